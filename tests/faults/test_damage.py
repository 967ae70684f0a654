"""Some of the files of ``python -m tests.faults --only damage``; ``make faults`` damages more."""

import random
from pathlib import Path

import pytest

from fabolas.storage import salvage
from fabolas.storage.reader import read
from tests.faults.damage import TRIALS, check, damaged_bytes, damaged_field, field_damages, make


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "study.db"
    make(path)
    return path.read_bytes()


def recorded(path: Path) -> set[tuple[str, float | None]]:
    """The trials of a file."""
    return {
        (trial.suggestion.point.tobytes().hex() + str(trial.info), trial.loss) for trial in read(path).trials
    }


@pytest.mark.slow
def test_damaged_bytes_are_one_sentence(sound: bytes, tmp_path: Path) -> None:
    rng, path = random.Random(0), tmp_path / "study.db"
    outcomes = set()
    for _ in range(12):
        path.write_bytes(sound)
        damaged_bytes(path, rng)
        outcomes.update(check(path).items())
    assert {("read", "sentence"), ("open", "sentence"), ("salvage", "fine")} <= outcomes


@pytest.mark.slow
def test_damaged_fields_are_one_sentence(sound: bytes, tmp_path: Path) -> None:
    rng, path = random.Random(0), tmp_path / "study.db"
    outcomes = set()
    path.write_bytes(sound)
    for damage in rng.sample(list(field_damages(path)), 15):
        path.write_bytes(sound)
        if damaged_field(path, *damage, rng):
            outcomes.update(check(path).items())
    assert {("read", "sentence"), ("open", "sentence"), ("salvage", "fine")} <= outcomes


@pytest.mark.slow
def test_salvage_recovers_all_trials_but_those_on_a_damaged_page(sound: bytes, tmp_path: Path) -> None:
    path, copy = tmp_path / "study.db", tmp_path / "copy.db"
    path.write_bytes(sound)
    intact = recorded(path)
    assert len(intact) == TRIALS + 1  # one was reported only
    least = len(intact)
    for page in range(1, len(sound) // 4096):
        content = bytearray(sound)
        content[4096 * page : 4096 * page + 4096] = random.Random(page).randbytes(4096)
        path.write_bytes(content)
        copy.unlink(missing_ok=True)
        if check(path)["salvage"] == "sentence":  # the page that says which study it is
            continue
        copy.unlink(missing_ok=True)
        salvaged = salvage(path, copy)
        found = recorded(copy)
        assert found <= intact
        assert len(found) == salvaged.trials
        least = min(least, salvaged.trials) if salvaged.trials else least
    assert least < len(intact)
    assert path.read_bytes() == content  # the damaged file was only read
