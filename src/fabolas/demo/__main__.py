"""Command line of the demo: ``python -m fabolas.demo --budget 60s``."""

import argparse
import sys
from importlib.util import find_spec

_NEEDED = (
    "The demo tunes scikit-learn's SVC, and scikit-learn is not installed. "
    "Install it with: pip install 'fabolas[sklearn]'"
)


def main(arguments: list[str] | None = None, prog: str = "python -m fabolas.demo") -> int:
    """Search, verify, show; returns the exit code."""
    parser = argparse.ArgumentParser(prog=prog, description="Tune an SVM on 20,000 handwritten digits, live.")
    parser.add_argument(
        "--budget", default="60s", help="time of the search, such as 60s or 2m (default: 60s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    options = parser.parse_args(arguments)
    if find_spec("sklearn") is None:
        print(_NEEDED, file=sys.stderr)
        return 1
    try:
        from fabolas.budget import seconds_of

        seconds_of(options.budget)
    except ValueError as error:
        parser.error(str(error))
    return _run(options.budget, options.seed)


def _run(budget: str, seed: int) -> int:
    from rich.console import Console

    from fabolas.demo import screen, svm
    from fabolas.demo.data import digits
    from fabolas.run import minimize

    console = Console(highlight=False)
    sample = digits()
    console.print(screen.opening(sample, budget))
    result = minimize(
        svm.Objective(sample),
        svm.SPACE,
        fidelities={"size": (svm.SMALLEST, len(sample.y_train))},
        time_budget=budget,
        seed=seed,
    )
    if result.incumbent is None:
        console.print("No trial was completed in that time; give it more, for example --budget 60s.")
        return 1
    console.print()
    with console.status("Verifying: one training of the winner on all the rows ..."):
        verification = svm.verify(sample, result.best_config)
    screen.closing(console, result, verification, sample)
    return 0


if __name__ == "__main__":
    sys.exit(main())
