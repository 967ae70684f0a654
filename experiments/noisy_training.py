"""Few trials of a noisy training: how often is the truth far outside of what the answer states?

    python -m experiments.noisy_training --seeds 16

A second training of a configuration would have another loss, so the truth is the mean. An answer is far off if the
truth is more than three of its standard deviations away. Preliminary answers do not count.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track

import fabolas

SPACE = {"rate": fabolas.Float(1e-4, 1e2, log=True), "share": fabolas.Float(0.0, 1.0)}
SIZES = {"size": (100, 50_000)}
TRIALS = (3, 5, 12, 20, 40)
FAR = 3.0  # standard deviations
Noise = Callable[[float, np.random.Generator], float]
NOISES: dict[str, Noise] = {
    "none": lambda mean, rng: mean,
    "0.005": lambda mean, rng: mean + 0.005 * rng.normal(),
    "0.02": lambda mean, rng: mean + 0.02 * rng.normal(),
    "30 %": lambda mean, rng: mean * np.exp(0.3 * rng.normal()),
}


def truth(config: dict[str, float], size: float) -> float:
    """The mean loss; the lowest one at the target is 0.104."""
    return float(
        0.1 + 0.03 * (np.log10(config["rate"]) + 1.3) ** 2 + 0.2 * (config["share"] - 0.6) ** 2 + size**-0.5
    )


def answer(noise: Noise, n_trials: int, seed: int) -> tuple[float, float] | None:
    """How many standard deviations the truth is away from the answer, and its std / loss; None if preliminary."""
    rng = np.random.default_rng([seed, 2017, 1])  # a stream of its own: a study's are those of [seed, id]

    def objective(config: dict[str, float], size: int) -> fabolas.Outcome:
        return fabolas.Outcome(noise(truth(config, size), rng), cost=0.3 + 60.0 * size / 50_000)

    result = fabolas.minimize(
        objective,
        SPACE,
        SIZES,
        max_trials=n_trials,
        seed=seed,
        overhead=0.2,
        effort=0.2,
        progress=False,
    )
    best = result.incumbent()
    if best is None or best.preliminary:
        return None
    return (truth(best.config, 50_000) - best.loss) / best.std, best.std / best.loss


def main() -> None:
    """One row for each noise and number of trials."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=16)
    seeds = range(parser.parse_args().seeds)
    console = Console(stderr=True)
    print("| noise | trials | far off | median std / loss |", "|---|---|---|---|", sep="\n")
    for name, noise in NOISES.items():
        for n_trials in TRIALS:
            runs = track(seeds, description=f"{name}, {n_trials} trials", console=console, transient=True)
            rows = [found for seed in runs if (found := answer(noise, n_trials, seed)) is not None]
            far = sum(abs(z) > FAR for z, _ in rows)
            width = f"{np.median([width for _, width in rows]):.3f}" if rows else "-"
            print(f"| {name} | {n_trials} | {far} of {len(rows)} | {width} |", flush=True)


if __name__ == "__main__":
    main()
