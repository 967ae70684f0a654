"""The state of a run as text: durations, numbers, configurations, and everything in one line.

User text in the returned strings is safe to show in a terminal.
"""

from collections.abc import Mapping
from typing import Any

from fabolas.budget import Budget
from fabolas.display import counted, safe_text
from fabolas.plus_minus import beside, plus_minus
from fabolas.progress.snapshot import FidelityCounts, Snapshot
from fabolas.trials import Incumbent, Trial

_BLOCKS = "▁▂▃▄▅▆▇█"
_NO_TRIALS = "·"


def line(snapshot: Snapshot, budget: Budget) -> str:
    """Return all in one line: ``1m05s / 30m | 23 trials | best 0.03 ± 0.01 | last trial: size 1,250 | 9% overhead``."""
    of_time = f" / {duration(budget.seconds)}" if budget.seconds is not None else ""
    parts = [f"{duration(snapshot.elapsed)}{of_time}", _trials_in_line(snapshot, budget.trials)]
    best = snapshot.incumbent
    parts.append("no answer yet" if best is None else f"best {loss(best, snapshot.measured)}")
    if snapshot.fidelity:
        parts.append(f"last trial: {fidelities(snapshot.fidelity)}")
    if snapshot.trials:
        parts.append(f"{snapshot.overhead_share:.0%} overhead")
    return " | ".join(parts)


def _trials_in_line(snapshot: Snapshot, limit: int | None) -> str:
    failed = f" ({snapshot.failed} failed)" if snapshot.failed else ""
    if limit is None:
        return f"{counted(snapshot.trials, 'trial')}{failed}"
    return f"{snapshot.budget_trials} / {limit} trials{_after_earlier(snapshot)}{failed}"


def _after_earlier(snapshot: Snapshot) -> str:
    return f" after {snapshot.trials_before} earlier ones" if snapshot.trials_before else ""


def duration(seconds: float) -> str:
    """Return a duration as text: 4.2s, 1m05s, 2h03m; a negative one, after a change of the clock, is 0.0s."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}s"
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def number(value: float) -> str:
    """Return a number as text: 1,250 or 0.125."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def loss(incumbent: Incumbent, measured: Trial | None) -> str:
    """Return the predicted loss as text: 0.03125 ± 0.0041; the measured one if it is too early for a prediction.

    Args:
        incumbent: The answer.
        measured: The best trial at any fidelity; None if there is none.
    """
    if not incumbent.preliminary:
        return plus_minus(incumbent.loss, incumbent.std)
    if measured is None or measured.loss is None:
        return "not known yet"
    return f"measured {beside(measured.loss, 0.0)} at {fidelities(measured.fidelity)}"


def what_is_known(incumbent: Incumbent) -> str:
    """Say whether the configuration was evaluated at the target, or how far the prediction can be relied on."""
    if incumbent.preliminary:
        return "too early to predict the target"
    return "verified at the target" if incumbent.verified else "not verified at the target"


def fidelities(fidelity: Mapping[str, float | int]) -> str:
    """Return fidelities as text: size 1,250, epochs 3."""
    return ", ".join(f"{safe_text(name)} {number(value)}" for name, value in fidelity.items())


def configuration(config: Mapping[str, Any]) -> str:
    """Return a configuration as text: C = 29.5, kernel = rbf."""
    return ", ".join(f"{safe_text(name)} = {short(value)}" for name, value in config.items())


def short(value: Any) -> str:
    """Return the value of a hyperparameter as short text."""
    return f"{value:.4g}" if isinstance(value, float) else safe_text(value)


def trial_counts(snapshot: Snapshot, limit: int | None = None) -> str:
    """Return the number of trials as text: 138 of 200 (2 failed, 1 abandoned)."""
    kinds = ((snapshot.failed, "failed"), (snapshot.abandoned, "abandoned"))
    not_complete = ", ".join(f"{n} {kind}" for n, kind in kinds if n)
    counted = f"{snapshot.trials}"
    if limit is not None:
        counted = f"{snapshot.budget_trials} of {limit}{_after_earlier(snapshot)}"
    return f"{counted} ({not_complete})" if not_complete else counted


def overhead(snapshot: Snapshot) -> str:
    """Return the overhead as text, and what it is."""
    return f"{snapshot.overhead_share:.0%} of the time, for choosing trials"


def bars(fidelity: FidelityCounts) -> str:
    """Return a histogram with one block per part of the range: 128 ▂█▅▁··▁▂ 20,000."""
    most = max(fidelity.counts, default=0)
    blocks = "".join(
        _BLOCKS[round((len(_BLOCKS) - 1) * count / most)] if count else _NO_TRIALS
        for count in fidelity.counts
    )
    return f"{number(fidelity.low)} {blocks} {number(fidelity.high)}"
