"""``fabolas best``: the answer of a study's file."""

import argparse
import json
import sys
from typing import Any

from fabolas.cli.answer import answer
from fabolas.cli.errors import told
from fabolas.cli.output import show
from fabolas.history import Incumbent
from fabolas.reader import StudyFile, read


def best(options: argparse.Namespace) -> int:
    """Print the best configuration; exit code 1 if there is none yet."""
    with told(ValueError):
        study = read(options.study)
    incumbent = answer_of(study)
    if incumbent is None:
        print(f"fabolas: {none_yet(study)}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(as_json(study, incumbent), indent=2))
    else:
        show(answer(incumbent, study.trials))
    return 0


def answer_of(study: StudyFile) -> Incumbent | None:
    """What the study recommends."""
    with told(ValueError):
        return study.incumbent()


def none_yet(study: StudyFile) -> str:
    """Why there is no answer."""
    if study.history.complete.any():
        return f"{study.path.name} has no answer yet: nothing that its strategy would recommend has run"
    return f"{study.path.name} has no answer yet: of {len(study.trials)} trials none completed"


def as_json(study: StudyFile, incumbent: Incumbent) -> dict[str, Any]:
    """The answer in the types of JSON; the keys are described in docs/cli.md."""
    known = {trial.id: trial for trial in study.trials}
    own = [known[number] for number in incumbent.trial_ids]
    return {
        "config": incumbent.config,
        "predicted_loss": incumbent.loss,
        "predicted_std": incumbent.std,
        "verified": incumbent.verified,
        "evaluations": [
            {"id": trial.id, "fidelity": trial.fidelity, "loss": trial.loss, "cost": trial.cost}
            for trial in own
        ],
    }
