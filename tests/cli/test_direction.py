import json
from pathlib import Path

import fabolas
from fabolas.budget import Budget
from fabolas.progress import Snapshot, text
from tests.helpers.command import Fabolas
from tests.helpers.problems import bowl, minimize


def test_progress_and_commands_show_the_sign_of_the_user(command: Fabolas) -> None:
    result = minimize(
        lambda config, size: -bowl(config, size), direction="maximize", storage="run.db", max_trials=3
    )
    loss = f"{result.predicted_loss:.4g}"
    assert loss.startswith("-")
    incumbent = result.incumbent()
    assert f"best {loss} ± 0" in text.line(Snapshot(trials=3, incumbent=incumbent), Budget(None, 3))
    assert loss in command("status", "run.db").out
    assert f"predicted value  {loss} ± 0" in command("best", "run.db").out
    assert "loss" not in command("best", "run.db").out
    assert json.loads(command("best", "run.db", "--json").out)["predicted_loss"] == result.predicted_loss
    command("export", "run.db", "trials.json")
    rows = json.loads(Path("trials.json").read_text())
    assert [row["loss"] for row in rows] == [trial.loss for trial in result.trials]


def test_a_problem_file_may_say_what_to_do(command: Fabolas) -> None:
    Path("up.py").write_text(
        "import fabolas\nspace = {'x': fabolas.Float(0.0, 1.0)}\ndirection = 'maximize'\nstrategy = 'random'\n"
        "def objective(config):\n    return config['x']\n"
    )
    assert command("run", "up.py", "--max-trials", "5", "--storage", "up.db", "--quiet").code == 0
    study = fabolas.load("up.db")
    assert study.predicted_loss == max(trial.loss or 0.0 for trial in study.trials)
