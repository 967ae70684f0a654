"""Does a test notice when a part of the method is switched off? ``make mutations``, or ``python -m tests.mutations``.

Each mutation changes one place of a copy of the sources. Then the tests that should notice it run with the copy, and
at least one of them must fail. Add a mutation here when you add a part whose effect is easy to lose.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutation:
    """A change of the sources, and the tests that should notice it."""

    what: str
    file: str  # below src/fabolas
    old: str
    new: str
    tests: str  # below tests


MUTATIONS = (
    Mutation(
        "a quick decision keeps one further point, not six",
        "strategies/effort.py",
        "BATCH_SIZE = 6",
        "BATCH_SIZE = 1",
        "strategies/test_decisions.py",
    ),
    Mutation(
        "the best candidates are not refined",
        "strategies/effort.py",
        "n_refined=interpolate(2, 24)",
        "n_refined=0",
        "strategies/test_acquire.py",
    ),
    Mutation(
        "the maximiser returns the best of its start",
        "strategies/acquire.py",
        "    return config.maximizer(\n        value, start,",
        "    return start[int(np.argmax(value(start)))]\n    return config.maximizer(\n        value, start,",
        "strategies/test_acquire.py",
    ),
    Mutation(
        "expected improvement is not climbed",
        "strategies/acquire.py",
        "higher = snap(_climb(value, found.point, domain)[None])",
        "higher = x",
        "strategies/test_acquire.py",
    ),
    Mutation(
        "many workers do not limit overhead",
        "strategies/effort.py",
        "MAX_BUSY_SHARE = 0.5",
        "MAX_BUSY_SHARE = 50.0",
        "strategies/test_decisions.py",
    ),
    Mutation(
        "the overhead of pending suggestions does not count",
        "strategies/effort.py",
        "counted = pending if _limited_by_workers(n_workers, overhead_share) else ()",
        "counted: tuple[Suggestion, ...] = ()",
        "strategies/test_effort.py",
    ),
    Mutation(
        "workers that wait count as gone",
        "strategies/effort.py",
        "        return self\n\n\n",
        "        return WorkerCount(at_once, suggested)\n\n\n",
        "strategies/test_effort.py",
    ),
    Mutation(
        "with many workers a batch is no longer than with one",
        "strategies/effort.py",
        "if not self.limited_by_workers:\n            return BATCH_SIZE",
        "if True:\n            return BATCH_SIZE",
        "strategies/test_effort.py",
    ),
    Mutation(
        "the last evaluations of a budget are no exception",
        "strategies/effort.py",
        "<= N_LAST_EVALUATIONS * next_cost",
        "<= -1.0",
        "strategies/test_decisions.py",
    ),
    Mutation(
        "the pool has no neighbours of good configurations",
        "strategies/acquire.py",
        "np.concatenate([known, minima, *near])",
        "np.concatenate([known, minima])",
        "strategies/test_acquire.py",
    ),
    Mutation(
        "fabolas decides at random",
        "strategies/fabolas.py",
        "        context, candidate = self._decide(history, pending, remaining, at_target, rng)\n",
        "        self._decide(history, pending, remaining, at_target, rng)\n"
        "        D = self.space.dim + self.space.n_fidelities\n"
        '        return Proposal(self.space.snap(rng.random((1, D)))[0], "information")\n',
        "strategies/test_fabolas.py -k near",
    ),
    Mutation(
        "fabolas makes its initial design only",
        "strategies/fabolas.py",
        "        context, candidate = self._decide(history, pending, remaining, at_target, rng)\n",
        '        return Proposal(self._design.points[len(history) % len(self._design.points)], "information")\n',
        "strategies/test_fabolas.py -k near",
    ),
    Mutation(
        "fabolas2017 makes its initial design only",
        "strategies/fabolas2017.py",
        "            candidate = maximize_information(context, pool, rng)\n",
        '            return Proposal(random_on_subsets(self.models.space, 1, rng)[0], "information")\n',
        "strategies/test_fabolas2017.py -k near",
    ),
    Mutation(
        "an evaluation is admitted by its predicted cost, not by its cost limit",
        "strategies/acquire.py",
        "return self.surrogate.costs_at_most(points, whole)",
        "return np.asarray(self.surrogate.predict_cost(points) <= whole)",
        "strategies/test_acquire.py -k by_its_cost_limit",
    ),
    Mutation(
        "the start of the workers counts towards the budget",
        "dispatch.py",
        "            self._run.restart_timer()\n",
        "            self._run.incumbent_is_due\n",
        "test_engine.py -k start_of_the_workers",
    ),
    Mutation(
        "trials that verify the answer look like those that the user enqueued",
        "trials.py",
        'VERIFICATION = "verification"',
        'VERIFICATION = "enqueued"',
        "test_verification.py -k not_recorded",
    ),
)


def is_noticed(mutation: Mutation) -> bool:
    """Whether the tests fail with the mutated sources; raises if the mutation has no place, or no test runs."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(shutil.copytree(ROOT / "src", Path(directory) / "src"))
        file = source / "fabolas" / mutation.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutation.old) != 1:
            raise ValueError(f"{mutation.what}: {mutation.file} must hold once: {mutation.old!r}")
        file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        path, *options = mutation.tests.split()
        command = [sys.executable, "-m", "pytest", "-q", "-x", str(ROOT / "tests" / path), *options]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{mutation.what}: the tests did not run:\n{ended.stdout}{ended.stderr}")
    return ended.returncode == 1


def main() -> None:
    """Print a line for each mutation; exit with 1 if one is not noticed."""
    missed = 0
    for mutation in MUTATIONS:
        noticed = is_noticed(mutation)
        missed += not noticed
        print(f"{'noticed' if noticed else 'MISSED '}  {mutation.what}", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
