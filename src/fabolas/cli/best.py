"""``fabolas best``: print the answer of a study."""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

from fabolas.cli.errors import NO_ANSWER, as_user_error, message
from fabolas.cli.output import answer, show, show_json
from fabolas.display import counted
from fabolas.study import LoadedStudy, load
from fabolas.trials import Incumbent, Trial


def best(options: argparse.Namespace) -> int:
    """Print the best configuration; the exit code is 1 if there is none yet."""
    study = load_study(options.study)
    incumbent = incumbent_of(study)
    if incumbent is None:
        message(_why_no_answer(study))
        return NO_ANSWER
    if options.json:
        show_json(incumbent_as_json(study.trials, incumbent))
    else:
        show(answer(incumbent, study))
    return 0


def load_study(path: str) -> LoadedStudy:
    """Read a study; a warning, for example that its last trials may be missing, is shown as a message.

    Raises:
        UserError: If it cannot be read.
    """
    with as_user_error(ValueError), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study = load(path)
    for warning in caught:
        message(warning.message)
    return study


def incumbent_of(study: LoadedStudy) -> Incumbent | None:
    """Return the configuration that the study recommends; None if there is none yet.

    Raises:
        UserError: If the study has a strategy that cannot be constructed from the file.
    """
    with as_user_error(ValueError):
        return study.incumbent()


def _why_no_answer(study: LoadedStudy) -> str:
    if study.history.complete.any():
        return f"{study.file.path.name} has no answer yet: its strategy recommends none of the evaluated configurations"
    return (
        f"{study.file.path.name} has no answer yet: of {counted(len(study.trials), 'trial')} none completed"
    )


def incumbent_as_json(trials: Sequence[Trial], incumbent: Incumbent) -> dict[str, Any]:
    """Return the answer in the types of JSON; docs/howto/command-line-studies.md describes the keys."""
    by_id = {trial.id: trial for trial in trials}
    own = [by_id[trial_id] for trial_id in incumbent.trial_ids]
    return {
        "config": incumbent.config,
        "predicted_loss": incumbent.loss,
        "predicted_std": incumbent.std,
        "verified": incumbent.verified,
        "preliminary": incumbent.preliminary,
        "trials": [
            {"id": trial.id, "fidelity": trial.fidelity, "loss": trial.loss, "cost": trial.cost}
            for trial in own
        ],
    }
