"""FABOLAS against today's tools.

    python -m experiments.peers screen --yahpo DIR
    python -m experiments.peers run --yahpo DIR --seeds 10 --processes 2
    python -m experiments.peers summary --yahpo DIR --seeds 10
    python -m experiments.peers figures --yahpo DIR --seeds 10

DIR is a copy of github.com/slds-lmu/yahpo_data and needs onnxruntime; `--problems mnist covtype` does without it. Each
tool needs its package: smac, optuna, dehb, hpbandster and statsmodels, botorch (with torch), scikit-learn. `summary`
and `figures` need the journal only. `experiments.peers.live` has problems with real trainings.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track

from experiments.peers import problems
from experiments.peers.compare import Journal, compare
from experiments.peers.tools import TOOLS

JOURNAL = Path(__file__).parent / "results.jsonl"
FIGURES = Path(__file__).parents[2] / "docs" / "figures"


def main() -> None:
    """Parse the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["screen", "run", "summary", "figures"])
    parser.add_argument("--yahpo", type=Path, help="directory of YAHPO Gym's data")
    parser.add_argument("--problems", nargs="*", default=list(problems.NAMES))
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--journal", type=Path, default=JOURNAL)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="where figures are written")
    given = parser.parse_args()
    if given.command == "screen":
        for found in problems.screen(given.yahpo):
            verdict = "suitable" if found.suitable else ""
            print(f"{found.name:24} cost ratio {found.cost_ratio:.3f}  gain {found.gain:.3f}  {verdict}")
        return
    names, journal = given.problems, Journal(given.journal)
    seeds = list(range(given.seeds))
    if given.command == "run":
        count, finished = compare(names, given.tools, seeds, given.yahpo, journal, given.processes)
        for job in track(finished, total=count, description="runs", console=Console(stderr=True)):
            print(*job.key, flush=True)
        return
    from experiments.peers import figures, summary

    typical = {name: problems.known(name, given.yahpo).typical_regret for name in names}
    results = summary.complete(journal, names, given.tools, seeds, typical)
    if given.command == "summary":
        print(summary.markdown(results), summary.markdown(results, intervals=False), sep="\n\n")
        if "fabolas" in given.tools:
            print("\nRegret as a multiple of that of fabolas:\n\n" + summary.against(results))
            print("\nThe same for each source of problems:\n\n" + summary.by_source(results))
            print("\nWhere other tools are ahead (* beyond chance):\n\n" + summary.ahead(results))
        print("\nRuns with an answer:\n\n" + summary.answered_share(results))
        return
    figures.overall(results, given.figures / "peers.png")
    figures.per_problem(results, given.figures / "peers_problems.png")


if __name__ == "__main__":
    main()
