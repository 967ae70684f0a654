"""The facts in words: durations, numbers, configurations, and all of it in one line."""

from collections.abc import Mapping
from typing import Any

from fabolas.budget import Budget
from fabolas.history import Incumbent
from fabolas.progress.snapshot import Sizes, Snapshot

_BLOCKS = "▁▂▃▄▅▆▇█"
_NONE = "·"


def line(news: Snapshot, budget: Budget) -> str:
    """The news in one line: ``1m05s / 30m00s | 23 trials | best 0.03 ± 0.01 | size 1,250 | 9% thinking``."""
    of_time = f" / {duration(budget.seconds)}" if budget.seconds is not None else ""
    of_trials = f" / {budget.trials}" if budget.trials is not None else ""
    failed = f" ({news.failed} failed)" if news.failed else ""
    trials = f"{news.trials}{of_trials} {'trial' if news.trials == 1 and not of_trials else 'trials'}{failed}"
    parts = [f"{duration(news.elapsed)}{of_time}", trials]
    parts.append("no answer yet" if news.incumbent is None else f"best {loss(news.incumbent)}")
    if news.fidelity:
        parts.append(fidelities(news.fidelity))
    if news.trials:
        parts.append(f"{news.thinking_share:.0%} thinking")
    return " | ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them: 4.2s, 1m05s, 2h03m."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}s"
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def number(value: float) -> str:
    """1,250 or 0.125."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def loss(incumbent: Incumbent) -> str:
    """0.03125 ± 0.0041."""
    return f"{incumbent.loss:.4g} ± {incumbent.std:.2g}"


def verified(incumbent: Incumbent) -> str:
    """Whether the answer was ever run at the target."""
    return "run at the target" if incumbent.verified else "not yet run at the target"


def fidelities(fidelity: Mapping[str, float | int]) -> str:
    """Size 1,250, epochs 3."""
    return ", ".join(f"{name} {number(value)}" for name, value in fidelity.items())


def configuration(config: Mapping[str, Any]) -> str:
    """C = 29.5, kernel = rbf."""
    return ", ".join(f"{name} = {setting(value)}" for name, value in config.items())


def setting(value: Any) -> str:
    """A hyperparameter's value, short enough to read."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counts(news: Snapshot, of: int | None = None) -> str:
    """138 of 200 (2 failed, 1 lost), 9% thinking."""
    beside = [f"{n} {what}" for n, what in ((news.failed, "failed"), (news.lost, "lost")) if n]
    counted = f"{news.trials}{'' if of is None else f' of {of}'}"
    aside = f" ({', '.join(beside)})" if beside else ""
    thinking = f", {news.thinking_share:.0%} of the time thinking" if news.trials else ""
    return f"{counted}{aside}{thinking}"


def bars(sizes: Sizes) -> str:
    """One block for each part of the range, the tallest for the part with most trials: 128 ▂█▅▁··▁▂ 20,000."""
    most = max(sizes.counts, default=0)
    blocks = "".join(
        _BLOCKS[round((len(_BLOCKS) - 1) * count / most)] if count else _NONE for count in sizes.counts
    )
    return f"{number(sizes.low)} {blocks} {number(sizes.high)}"
