"""The record of a study: what was searched, and all that is needed to repeat the search."""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from fabolas import __version__
from fabolas.plain_values import safe_repr
from fabolas.plots.durations import duration
from fabolas.plots.ticks import number
from fabolas.report.readable import ReportableStudy, file_of
from fabolas.space.description import condition_texts, forbidden_texts
from fabolas.storage.reader import StudyFile

_PACKAGES = ("numpy", "scipy", "emcee", "plotly")  # whose version may change the numbers and the figures
_MAX_CHOICES = 12  # of a hyperparameter that are listed


@dataclass(frozen=True)
class AxisRow:
    """A hyperparameter or a fidelity.

    Attributes:
        name: Its name.
        kind: "float", "integer", "categorical", "ordinal", "constant" or "fidelity", and whether it is logarithmic.
        values: Its range or its choices.
    """

    name: str
    kind: str
    values: str


@dataclass(frozen=True)
class StudyRecord:
    """What was searched, how, and with which software.

    Attributes:
        axes: Hyperparameters, then fidelities.
        rules: Conditions and forbidden clauses as text.
        facts: (name, value) pairs.
    """

    axes: tuple[AxisRow, ...]
    rules: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, study: ReportableStudy, now: float) -> "StudyRecord":
        """Return the record of a study; ``now`` is the time in seconds since the epoch."""
        file = file_of(study)
        description = study.space.describe() if file is None else file.space_description
        return cls(
            axes=(
                *(_axis(entry) for entry in description["parameters"]),
                *(_fidelity(entry) for entry in description["fidelities"]),
            ),
            rules=(
                *condition_texts(description),
                *(f"forbidden: {text}" for text in forbidden_texts(description)),
            ),
            facts=(*_facts(study, file), ("Page made", _utc(now)), ("Software", _versions())),
        )


def _axis(entry: dict[str, Any]) -> AxisRow:
    if "low" in entry:
        return AxisRow(entry["name"], _kind(entry["kind"], entry), _range(entry))
    choices = list(entry["choices"])
    more = f", and {len(choices) - _MAX_CHOICES} more" if len(choices) > _MAX_CHOICES else ""
    return AxisRow(entry["name"], entry["kind"], ", ".join(choices[:_MAX_CHOICES]) + more)


def _fidelity(entry: dict[str, Any]) -> AxisRow:
    return AxisRow(entry["name"], _kind("fidelity", entry), f"{_range(entry)} (target)")


def _kind(kind: str, entry: dict[str, Any]) -> str:
    return f"{kind}, log" if entry["log"] else kind


def _range(entry: dict[str, Any]) -> str:
    return f"{number(entry['low'])} to {number(entry['high'])}"


def _facts(study: ReportableStudy, file: StudyFile | None) -> list[tuple[str, str]]:
    facts = [
        ("Objective", "minimised" if study.direction == "minimize" else "maximised"),
        ("Strategy", study.strategy.name if file is None else file.strategy),
    ]
    if file is not None and file.options:
        facts.append(
            ("Options", ", ".join(f"{key}={safe_repr(value, 200)}" for key, value in file.options.items()))
        )
    facts.append(("Seed", str(study.seed)))
    if file is not None:
        facts.append(("File", file.path.name))
        if file.run_budget is not None:
            facts.append(("Budget of the last run", _budget(file)))
    times = [trial.started for trial in study.trials if trial.started is not None and trial.started > 0]
    ends = [trial.ended for trial in study.trials if trial.ended is not None and trial.ended > 0]
    if times and ends:
        facts += [("First trial started", _utc(min(times))), ("Last trial ended", _utc(max(ends)))]
    return facts


def _budget(file: StudyFile) -> str:
    assert file.run_budget is not None
    budget = file.run_budget.budget
    limits = [] if budget.seconds is None else [duration(budget.seconds)]
    if budget.trials is not None:
        limits.append(f"{number(budget.trials)} trial{'' if budget.trials == 1 else 's'}")
    return " or ".join(limits)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _versions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"fabolas {__version__}, Python {platform.python_version()}, {packages}"
