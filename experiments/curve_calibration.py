"""Whether reports spoil the calibration of predictions at the target: coverage on simulated curves.

    python -m experiments.curve_calibration --seeds 20

A curve is exp(-1.2 + 0.8 (x - 0.5)^2 + b (1 - u) + e_i + eps): a power law in the epochs whose slope b depends on x,
with noise e_i that all points of a training share, and noise eps of each point. 16 trainings end at 4 to 27 of 81
epochs. Predicted is the loss without noise at the target for 50 configurations. Three models: the ends alone, the ends
and the reports with a common noise per training, and the same with independent noise. Printed are the coverage of the
95 % interval, the root mean square of z, and the root mean square error, in units of the logarithm.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse

import numpy as np

from fabolas import Fidelity, Float, Space, surrogate
from fabolas.gp.trainings import in_training
from fabolas.model_spec import Columns, ModelSpec, SurrogatePrior
from fabolas.strategies.models import relative_sizes
from fabolas.surrogate import Data

SPACE = Space({"x": Float(0.0, 1.0)}, {"epochs": Fidelity(1, 81, reports=True)})
TRAININGS, POINTS, PREDICTED = 16, 5, 50
SHARED, OWN = 0.08, 0.02  # standard deviations
MODELS = ("ends", "reports, common noise", "reports, independent noise")


def mean(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The logarithm of a curve without noise."""
    return -1.2 + 0.8 * (x - 0.5) ** 2 + (0.8 + 0.4 * x) * (1.0 - u)


def errors(model: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the predicted logarithms at the target, and their predicted deviations: (m,) each."""
    rng = np.random.default_rng(seed)
    x, end = rng.random(TRAININGS), np.log(rng.integers(4, 28, TRAININGS)) / np.log(81.0)
    shared = SHARED * rng.normal(size=TRAININGS)
    fractions = np.linspace(0.2, 1.0, POINTS)
    number, j = (grid.ravel() for grid in np.meshgrid(np.arange(TRAININGS), np.arange(POINTS), indexing="ij"))
    points = SPACE.snap(np.column_stack([x[number], fractions[j] * end[number]]))
    losses = np.exp(mean(*points.T) + shared[number] + OWN * rng.normal(size=len(points)))
    kept = j == POINTS - 1 if model == "ends" else np.ones(len(j), dtype=bool)
    points, losses, number = points[kept], losses[kept], number[kept]
    common = model == "reports, common noise"
    columns = Columns(SPACE.n_choices, 1, relative_sizes(SPACE), 2 if common else None, curve=1)
    given = in_training(points, number) if common else points
    data = Data(given, losses, 81.0 ** points[:, 1], np.zeros(len(points), dtype=bool))
    models, _, _ = surrogate.fit(SurrogatePrior(ModelSpec(), columns), data, None, 30, 12, rng)
    targets = SPACE.snap(np.column_stack([rng.random(PREDICTED), np.ones(PREDICTED)]))
    predicted, variance = models.predict_loss(targets)
    truth = models.transform.forward(np.exp(mean(*targets.T)))
    return (truth - predicted) * models.transform.scale, np.sqrt(variance) * models.transform.scale


def main() -> None:
    """Prints a line per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    print("| model | coverage of 95 % | rms z | rms error |\n|---|---|---|---|")
    for model in MODELS:
        error, deviation = (np.concatenate(c) for c in zip(*(errors(model, s) for s in seeds), strict=True))
        z = error / deviation
        covered = np.mean(np.abs(z) < 1.96)
        print(
            f"| {model} | {covered:.2f} | {np.sqrt(np.mean(z**2)):.2f} | {np.sqrt(np.mean(error**2)):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
