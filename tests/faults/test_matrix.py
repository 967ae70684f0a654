"""A handful of the faults of ``python -m tests.faults``; ``make faults`` tries all of them."""

import random

import pytest

from tests.faults.__main__ import PARTS
from tests.faults.bad_objectives import KINDS
from tests.faults.tally import SkippedError, Tried, attempt, table
from tests.helpers.hostile import HOSTILE
from tests.helpers.marks import slow

# test_kill.py and test_damage.py have a selection of their own.
SHORT = [part for part in PARTS if part not in ("kill", "damage")]


@pytest.mark.parametrize("part", ["names", *slow(*(part for part in SHORT if part != "names"))])
def test_what_is_promised_holds_under_a_handful_of_faults(part: str) -> None:
    tried = list(PARTS[part](random.Random(0), True, None))
    assert tried
    assert not [one for one in tried if one.problem]


def test_the_matrix_is_as_large_as_promised() -> None:
    from tests.faults.executors import KINDS as EXECUTORS

    assert len(KINDS) >= 60
    assert len(EXECUTORS) >= 10
    assert len(HOSTILE) >= 30


def raising(error: Exception) -> None:
    raise error


def test_the_table_counts_what_held_and_names_what_failed() -> None:
    tried = [
        attempt("disk", "first", lambda: None),
        attempt("disk", "second", lambda: raising(ValueError("lost"))),
        attempt("disk", "third", lambda: raising(SkippedError("needs root"))),
        Tried("name", "fourth"),
    ]
    assert table(tried).splitlines() == [
        "| kind | tries | held | failed |",
        "|---|---:|---:|---:|",
        "| disk | 2 | 1 | 1 |",
        "| name | 1 | 1 | 0 |",
        "| all | 3 | 2 | 1 |",
        "failed: disk: second: ValueError: lost",
        "skipped: disk: third: needs root",
    ]
