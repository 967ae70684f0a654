"""A network trained live, with rows and epochs as fidelities: what each of them saves, and reports on top.

    python -m experiments.curves_live --seeds 3 --seconds 60 --rows 1200

The network has one hidden layer and is trained by PyTorch on scikit-learn's digits, or on the arrays `x_train`,
`y_train`, `x_test`, `y_test` of a file given with `--data`. Time is the wall clock, so the machine should have nothing
else to do. The answer of each search is trained once more on all rows for all epochs with three other seeds; printed is
the mean error on the test rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fabolas

SPACE = {
    "lr": fabolas.Float(1e-4, 1.0, log=True),
    "momentum": fabolas.Float(0.0, 0.98),
    "weight_decay": fabolas.Float(1e-6, 1e-1, log=True),
    "hidden": fabolas.Integer(8, 256, log=True),
    "batch": fabolas.Integer(16, 256, log=True),
}
EPOCHS, SMALLEST_ROWS = 27, 64
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def arrays(path: Path | None, rows: int) -> Arrays:
    """Training and test rows, pixels in [0, 1]."""
    if path is None:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(x))
        x, y = x[order] / 16.0, y[order]
        return x[:rows], y[:rows], x[rows:], y[rows:]
    with np.load(path) as data:
        x, y, x_test, y_test = (data[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    return (
        x[:rows].reshape(rows, -1) / 255.0,
        y[:rows],
        x_test[:4000].reshape(4000, -1) / 255.0,
        y_test[:4000],
    )


def train(
    data: Arrays, config: dict[str, Any], rows: int, epochs: int, seed: int, report: Callable[..., Any]
) -> float:
    """The error on the test rows after so many epochs; `report(epochs=, loss=)` after each."""
    torch.manual_seed(seed)
    x, y, x_test, y_test = (
        torch.tensor(a, dtype=torch.float32 if i % 2 == 0 else torch.int64) for i, a in enumerate(data)
    )
    x, y = x[:rows], y[:rows]
    model = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], config["hidden"]), torch.nn.ReLU(), torch.nn.Linear(config["hidden"], 10)
    )
    optimizer = torch.optim.SGD(
        model.parameters(),
        config["lr"],
        config["momentum"],
        weight_decay=config["weight_decay"],
        nesterov=config["momentum"] > 0,
    )
    error = 1.0
    for epoch in range(1, epochs + 1):
        for batch in torch.randperm(len(x)).split(config["batch"]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            error = float((model(x_test).argmax(1) != y_test).float().mean())
        report(epochs=epoch, loss=error)
    return error


def search(data: Arrays, variant: str, seconds: float, seed: int) -> fabolas.Result:
    """A search of so many seconds of wall clock, as a user runs it."""
    rows = len(data[0])
    fidelities: dict[str, Any] = {}
    if "rows" in variant or "both" in variant:
        fidelities["rows"] = (SMALLEST_ROWS, rows)
    if "epochs" in variant or "both" in variant:
        fidelities["epochs"] = fabolas.Fidelity(1, EPOCHS, reports="reports" in variant)

    def objective(config: dict[str, Any], trial: fabolas.TrialContext, **fidelity: int) -> float:
        def report(**reached: float) -> None:
            if "reports" in variant:
                trial.report(**reached)

        sizes = {"rows": rows, "epochs": EPOCHS, **fidelity}
        return train(data, config, sizes["rows"], sizes["epochs"], trial.number, report)

    return fabolas.minimize(
        objective, SPACE, fidelities=fidelities, time_budget=seconds, seed=seed, progress=False
    )


def main() -> None:
    """Prints a line per search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("--data", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = arrays(arguments.data, arguments.rows)
    print("| search | seed | trials | error of the answer |\n|---|---|---|---|")
    for seed in range(arguments.seeds):
        for variant in ("rows only", "epochs only", "both", "both with reports"):
            result = search(data, variant, arguments.seconds, seed)
            errors = [
                train(data, result.best_config, len(data[0]), EPOCHS, 1000 + k, lambda **reached: None)
                for k in range(3)
            ]
            print(f"| {variant} | {seed} | {len(result.trials)} | {np.mean(errors):.4f} |", flush=True)


if __name__ == "__main__":
    main()
