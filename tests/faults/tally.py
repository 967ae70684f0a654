"""What the parts of ``python -m tests.faults`` report, and the table that they end in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tried:
    """One fault that was tried.

    Attributes:
        kind: The row of the table.
        what: The fault, so that it can be found again.
        problem: What did not hold; None if all of it did.
        skipped: Why it could not be tried here; None if it was.
    """

    kind: str
    what: str
    problem: str | None = None
    skipped: str | None = None


class SkippedError(Exception):
    """This machine cannot produce the fault; the message says why."""


def attempt(kind: str, what: str, check: Callable[..., object], *arguments: Any) -> Tried:
    """Try one fault: ``check(*arguments)`` raises if something does not hold; the table counts it."""
    try:
        check(*arguments)
    except SkippedError as reason:
        return Tried(kind, what, skipped=str(reason))
    except Exception as error:  # noqa: BLE001 - every exception is a failure that the table counts
        return Tried(kind, what, f"{type(error).__name__}: {error}")
    return Tried(kind, what)


def table(tried: Iterable[Tried]) -> str:
    """Rows of kind, tries, held and failed, a sum, and below them what failed or could not be tried."""
    rows: dict[str, list[Tried]] = {}
    for one in tried:
        rows.setdefault(one.kind, []).append(one)
    lines = ["| kind | tries | held | failed |", "|---|---:|---:|---:|"]
    lines += [_row(kind, ones) for kind, ones in rows.items()]
    everything = [one for ones in rows.values() for one in ones]
    lines.append(_row("all", everything))
    lines += [f"failed: {one.kind}: {one.what}: {one.problem}" for one in everything if one.problem]
    lines += [f"skipped: {one.kind}: {one.what}: {one.skipped}" for one in everything if one.skipped]
    return "\n".join(lines)


def _row(kind: str, tried: list[Tried]) -> str:
    count = sum(one.skipped is None for one in tried)
    failed = sum(one.problem is not None for one in tried)
    return f"| {kind} | {count} | {count - failed} | {failed} |"
