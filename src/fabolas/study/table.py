"""The trials of a study as a table: for ``to_frame`` and for ``fabolas export``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fabolas.space import Space
from fabolas.trials import Trial

if TYPE_CHECKING:
    from pandas import DataFrame


def columns_of(space: Space, trials: Sequence[Trial]) -> list[str]:
    """The names of the columns, in the order in which they are shown."""
    described = space.describe()
    info = dict.fromkeys(name for trial in trials for name in trial.info)
    return [
        *("id", "status", "loss", "cost"),
        *(f"fidelity_{entry['name']}" for entry in described["fidelities"]),
        *(f"config_{entry['name']}" for entry in described["parameters"]),
        *("started", "ended", "elapsed", "overhead", "effort", "predicted_cost", "origin"),
        *(("continues", "stopped") if space.curve_name is not None else ()),
        *(f"info_{name}" for name in info),
        "error",
    ]


def _curve_values(trial: Trial) -> dict[str, Any]:
    continues = None if trial.restarted else trial.suggestion.continues
    return {"continues": continues, "stopped": trial.stopped}


def report_rows(trial: Trial) -> list[dict[str, Any]]:
    """One row for each report of a trial, then that of the trial itself."""
    whole = row_of(trial)
    rows = []
    for report in trial.reports:
        if report.fidelity == trial.fidelity and trial.status == "complete":
            continue  # the end of the training, which is the row of the trial
        where = {f"fidelity_{name}": value for name, value in report.fidelity.items()}
        rows.append({**whole, "status": "reported", "loss": report.loss, "cost": report.cost, **where})
    return [*rows, whole]


def row_of(trial: Trial) -> dict[str, Any]:
    """A trial as one row; an inactive hyperparameter has no value. Times are in seconds since the epoch."""
    s = trial.suggestion
    return {
        "id": s.id,
        "status": trial.status,
        "loss": trial.loss,
        "cost": trial.cost,
        **{f"fidelity_{name}": value for name, value in trial.fidelity.items()},
        **{f"config_{name}": value for name, value in s.config.items()},
        "started": trial.started,
        "ended": trial.ended,
        "elapsed": trial.elapsed,
        "overhead": s.overhead,
        "effort": s.effort,
        "predicted_cost": s.predicted_cost,
        "origin": s.origin,
        **(_curve_values(trial) if trial.reports or s.continues is not None else {}),
        **{f"info_{name}": value for name, value in trial.info.items()},
        "error": trial.error,
    }


def frame_of(space: Space, trials: Sequence[Trial], *, reports: bool = False) -> "DataFrame":
    """The table as a DataFrame, with times in UTC; with one row per report if asked for.

    Raises:
        ImportError: If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame() needs pandas; install it with: pip install 'fabolas[plots]'") from error
    rows = [row for trial in trials for row in (report_rows(trial) if reports else [row_of(trial)])]
    frame = pd.DataFrame(rows, columns=columns_of(space, trials))
    for name in ("started", "ended"):
        frame[name] = pd.to_datetime(frame[name].astype(float), unit="s", utc=True)
    return frame
