"""Each recipe of docs/howto/trackers.md runs with the real library, where it is installed."""

import re
from pathlib import Path
from typing import Any

import pytest

import fabolas

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "trackers.md"
_BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
N_TRIALS = 8  # of each recipe


def run(library: str, monkeypatch: pytest.MonkeyPatch, directory: Path) -> dict[str, Any]:
    """Run the problem of the page and the recipe that imports this library; return its names."""
    pytest.importorskip(library, reason=f"{library} is not installed; the recipe needs it")
    monkeypatch.chdir(directory)
    problem, *recipes = _BLOCKS.findall(PAGE.read_text("utf-8"))
    (recipe,) = [block for block in recipes if re.search(rf"^(import|from) {library}", block)]
    namespace: dict[str, Any] = {"__name__": "recipes"}
    quiet = recipe.replace("max_trials=8", 'max_trials=8, strategy="random", progress=False')
    for code in (problem, quiet):
        exec(compile(code, str(PAGE), "exec"), namespace)
    assert isinstance(namespace["result"], fabolas.Result)
    assert len(namespace["result"].trials) == N_TRIALS
    return namespace


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the library's own imports
def test_mlflow_has_a_run_for_each_trial_and_one_for_the_search(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy", reason="mlflow needs sqlalchemy to store runs in a file")
    names = run("mlflow", monkeypatch, tmp_path)
    runs = names["mlflow"].search_runs(output_format="list")
    trials = [entry for entry in runs if "status" in entry.data.tags]
    assert len(runs) == N_TRIALS + 1
    assert len(trials) == N_TRIALS
    assert sorted(entry.data.metrics["loss"] for entry in trials) == sorted(
        trial.loss for trial in names["result"].trials
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_gets_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run("tensorboardX", monkeypatch, tmp_path)
    (events,) = (tmp_path / "tensorboard").iterdir()
    content = events.read_bytes()
    assert content.count(b"fidelity/size") == N_TRIALS
    assert content.count(b"loss") == N_TRIALS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_keeps_the_run_on_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WANDB_SILENT", "true")
    run("wandb", monkeypatch, tmp_path)
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert kept.stat().st_size > 0


def test_the_page_has_a_recipe_for_each_library() -> None:
    text = PAGE.read_text("utf-8")
    assert all(
        f"import {name}" in text or f"from {name}" in text for name in ("mlflow", "tensorboardX", "wandb")
    )
