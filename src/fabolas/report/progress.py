"""How far the run of a study is: whether a process uses it, what is left of its budget, what runs now."""

from dataclasses import dataclass

from fabolas.plots.durations import duration
from fabolas.plots.ticks import number
from fabolas.progress.snapshot import RunningTrial
from fabolas.storage.reader import StudyFile

_ENDED_EARLY = 0.75  # share of the budget; with less, the page says how much was used
_LOST_ITS_LOG = (
    "The last trials may be missing: the file was copied during a run, or left by a crash, without its log."
)


@dataclass(frozen=True)
class RunProgress:
    """The state of a run at one moment.

    Attributes:
        running: Whether a process has the study open.
        used_share: Used part of the budget, from 0 to 1; None without a budget.
        used: The same as text, empty without a budget.
        trials: The trials that are being evaluated; None if that is not known.
        notes: What the reader should know: that trials may be missing, or that the run ended before its budget.
    """

    running: bool = False
    used_share: float | None = None
    used: str = ""
    trials: tuple[RunningTrial, ...] | None = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: StudyFile | None, now: float) -> "RunProgress":
        """Return the state of the run that has, or had, a file open.

        Args:
            file: The file of the study; None if the study was not loaded from one.
            now: The time in seconds since the epoch.
        """
        if file is None:
            return cls()
        running = file.lock_owner is not None
        share, used = _used(file, now)
        ended_early = not running and share is not None and share < _ENDED_EARLY
        open_trials = file.started_suggestions if running else ()
        return cls(
            running=running,
            used_share=share,
            used=used,
            trials=tuple(
                RunningTrial(s.id, s.fidelity, s.predicted_cost, max(now - file.started[s.id], 0.0))
                for s in open_trials
            ),
            notes=(
                *((_LOST_ITS_LOG,) if file.lost_its_log else ()),
                *((_ended_early(file, used),) if ended_early else ()),
            ),
        )


def _ended_early(file: StudyFile, used: str) -> str:
    lost = len(file.started_suggestions)
    cut = "" if not lost else f" {'A trial' if lost == 1 else f'{number(lost)} trials'} had not ended."
    return f"The last run ended before its budget: it used {used}.{cut} Run it again to continue."


def _used(file: StudyFile, now: float) -> tuple[float | None, str]:
    """Return the used share of the budget, and the used budget as text: 9 s of 20 s, 78 of 100 trials."""
    run, used = file.run_budget, file.usage(now)
    if run is None or used is None:
        return None, ""
    shares, parts = [], []
    if run.budget.seconds is not None:
        shares.append(used.seconds / run.budget.seconds)
        parts.append(f"{duration(round(used.seconds))} of {duration(run.budget.seconds)}")
    if run.budget.trials is not None:
        shares.append(used.trials / run.budget.trials)
        parts.append(f"{number(used.trials)} of {number(run.budget.trials)} trials")
    return min(max(shares), 1.0), ", ".join(parts)
