"""The command line of the demo: ``python -m fabolas.demo --time-budget 60s``."""

import argparse
import sys
from importlib.util import find_spec

_NEEDS_SKLEARN = (
    "The demo tunes the SVC of scikit-learn, which is not installed. "
    "Install it with: pip install 'fabolas[sklearn]'"
)


def main(arguments: list[str] | None = None, prog: str = "python -m fabolas.demo") -> int:
    """Search, train the answer on all rows, show both; return the exit code."""
    parser = argparse.ArgumentParser(
        prog=prog, description="Tune an SVM on 20,000 handwritten digits and watch it."
    )
    parser.add_argument("--time-budget", default="60s", help="time for the search: 60s, 2m (default: 60s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    options = parser.parse_args(arguments)
    if find_spec("sklearn") is None:
        print(_NEEDS_SKLEARN, file=sys.stderr)
        return 1
    try:
        from fabolas.budget import seconds_of

        seconds_of(options.time_budget)
    except ValueError as error:
        parser.error(str(error))
    return _run(options.time_budget, options.seed)


def _run(budget: str, seed: int) -> int:
    from fabolas.api import minimize
    from fabolas.demo import screen, svm
    from fabolas.demo.data import digits
    from fabolas.display import make_console

    console = make_console()
    sample = digits()
    console.print(screen.opening(sample, budget))
    result = minimize(
        svm.Objective(sample),
        svm.SPACE,
        fidelities={"size": (svm.MIN_SIZE, len(sample.y_train))},
        time_budget=budget,
        seed=seed,
    )
    if result.incumbent() is None:
        console.print(
            "No trial was completed in this time. Use a larger budget, for example --time-budget 60s."
        )
        return 1
    console.print()
    with console.status("Training the best configuration on all rows, to check the answer ..."):
        full_training = svm.train_on_all_rows(sample, result.best_config)
    screen.closing(console, result, full_training, sample)
    return 0


if __name__ == "__main__":
    sys.exit(main())
