"""Train an SVM on every cell of the grid (size, repetition, C, gamma); keep its errors and its seconds.

    python -m experiments.svm_grid.generate --data mnist --source DIR --rows 16384 --processes 2
    python -m experiments.svm_grid.generate --data mnist --rows 16384 --pack

Every finished cell is one line of a journal in the cache folder: a killed run goes on where it was. Sizes
come smallest first, and the cells of a size in shuffled order, so that an unfinished journal is already a
table. `--pack` writes the table that is committed; it also packs an unfinished journal, with NaN where
nothing was measured, and says what is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

# One thread a process: the seconds are process time, which would count every thread of the linear algebra.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import sklearn  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from experiments import lines  # noqa: E402
from experiments.svm_grid import sources, votes  # noqa: E402

GRID = 20
LOG_BOUNDS = (-10.0, 10.0)
HALVINGS = 8  # sizes N / 2^8 ... N
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Plan:
    """What is measured; a journal made under another plan is refused."""

    data: str
    rows: int
    valid: int
    test: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 2**HALVINGS * 8:
            raise ValueError(
                f"expected at least {2**HALVINGS * 8} rows, 8 at the smallest size; got {self.rows}"
            )

    @property
    def sizes(self) -> list[int]:
        return [self.rows // 2**k for k in range(HALVINGS, -1, -1)]

    @staticmethod
    def repetitions(index: int) -> int:
        """Four for sizes up to 1/16, two for 1/8, one above."""
        fraction = 2.0 ** (index - HALVINGS)
        return 4 if fraction <= 1 / 16 else 2 if fraction <= 1 / 8 else 1


@dataclass(frozen=True)
class Cell:
    """One training: indices of size, repetition, C and gamma."""

    size: int
    repetition: int
    c: int
    gamma: int


@dataclass(frozen=True)
class Measurement:
    """What a training gave: errors, and process seconds of `fit` and of `predict` on the validation rows."""

    valid: float
    test: float
    fit: float
    predict: float


def log_grid() -> npt.NDArray[np.float64]:
    """The natural logarithms of C and of gamma on the grid."""
    return np.linspace(*LOG_BOUNDS, GRID)


def cells(plan: Plan) -> Iterator[Cell]:
    """All cells, cheap sizes first, shuffled within a size."""
    rng = np.random.default_rng([plan.seed, 1])
    for index in range(len(plan.sizes)):
        for repetition in range(plan.repetitions(index)):
            for flat in rng.permutation(GRID * GRID):
                yield Cell(index, repetition, int(flat) // GRID, int(flat) % GRID)


class Trainer:
    """The data in memory, and one training at a time."""

    def __init__(self, plan: Plan, source: Path) -> None:
        self.plan = plan
        self.split = sources.load(plan.data, source, plan.rows, plan.valid, plan.test)
        self._distances = votes.squared_distances(self.split.x_test, self.split.x_train)
        count = max(plan.repetitions(i) for i in range(len(plan.sizes)))
        # The subsets of one repetition are nested; another repetition has another order of the rows.
        self._orders = [np.random.default_rng([plan.seed, 2, r]).permutation(plan.rows) for r in range(count)]

    def __call__(self, cell: Cell) -> tuple[Cell, Measurement]:
        s = self.split
        rows = self._orders[cell.repetition][: self.plan.sizes[cell.size]]
        c, gamma = np.exp(log_grid()[[cell.c, cell.gamma]])
        model = SVC(C=c, gamma=gamma, cache_size=500)
        start = time.process_time()
        model.fit(s.x_train[rows], s.y_train[rows])
        fitted = time.process_time()
        valid = float(np.mean(model.predict(s.x_valid) != s.y_valid))
        predicted = time.process_time()
        if len(model.classes_) > 2:
            labels = votes.predict(model, self._distances[:, rows[model.support_]], gamma)
        else:
            labels = model.predict(s.x_test)
        test = float(np.mean(labels != s.y_test))
        return cell, Measurement(valid, test, fitted - start, predicted - fitted)


class Journal:
    """One line a finished cell, after the plan they are of."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.done: dict[Cell, Measurement] = {}
        recorded = lines.read(path)
        if not recorded:
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / ".gitignore").write_text("*\n")
            lines.append(path, {"plan": asdict(plan)})
            return
        found = recorded[0]["plan"]
        if found != asdict(plan):
            raise ValueError(
                f"expected a journal of {asdict(plan)}, got {path} of {found};"
                " use the same options or another --cache"
            )
        for entry in recorded[1:]:
            self.done[Cell(*entry["cell"])] = Measurement(*entry["is"])

    def add(self, cell: Cell, measurement: Measurement) -> None:
        self.done[cell] = measurement
        lines.append(
            self.path, {"cell": list(asdict(cell).values()), "is": list(asdict(measurement).values())}
        )


_workers: list[Trainer] = []  # filled before the fork, so that the processes share the data


def _train(cell: Cell) -> tuple[Cell, Measurement]:
    return _workers[0](cell)


def run(plan: Plan, source: Path, journal: Journal, processes: int) -> None:
    """Measure every cell that the journal does not have yet."""
    todo = [cell for cell in cells(plan) if cell not in journal.done]
    total = len(todo) + len(journal.done)
    if not todo:
        return
    _workers[:] = [Trainer(plan, source)]
    if processes == 1:
        _record(map(_train, todo), plan, journal, total)
        return
    with get_context("fork").Pool(processes) as pool:
        _record(pool.imap_unordered(_train, todo), plan, journal, total)


def _record(results: Iterator[tuple[Cell, Measurement]], plan: Plan, journal: Journal, total: int) -> None:
    begin = shown = time.monotonic()
    for cell, measurement in results:
        journal.add(cell, measurement)
        if time.monotonic() - shown > 30 or len(journal.done) == total:
            shown = time.monotonic()
            print(
                f"{shown - begin:7.0f} s  {len(journal.done)}/{total} cells,"
                f" now at size {plan.sizes[cell.size]}, repetition {cell.repetition}",
                flush=True,
            )


def pack(plan: Plan, journal: Journal, target: Path) -> list[str]:
    """Write the table of all measurements and tell what is missing, one sentence per size."""
    repeats = [plan.repetitions(i) for i in range(len(plan.sizes))]
    shape = (len(plan.sizes), max(repeats), GRID, GRID)
    names = ("valid", "test", "fit_seconds", "predict_seconds")
    arrays = {name: np.full(shape, np.nan, dtype=np.float32) for name in names}
    for cell, m in journal.done.items():
        where = (cell.size, cell.repetition, cell.c, cell.gamma)
        for name, value in zip(arrays, (m.valid, m.test, m.fit, m.predict), strict=True):
            arrays[name][where] = value
    missing = []
    for index, size in enumerate(plan.sizes):
        lacking = int(np.isnan(arrays["valid"][index, : repeats[index]]).sum())
        if lacking:
            missing.append(f"size {size}: {lacking} of {repeats[index] * GRID * GRID} cells are missing")
    meta = asdict(plan) | {
        "sizes": plan.sizes,
        "repetitions": repeats,
        "preprocessing": sources.PREPROCESSING[plan.data],
        "model": "sklearn.svm.SVC(kernel='rbf', cache_size=500), no limit on iterations",
        "subsets": "random, nested within a repetition; all rows at the largest size",
        "seconds": "process time of fit, and of predict on the validation rows; one thread",
        "layout": "errors and seconds: (size, repetition, C, gamma); NaN: not measured",
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "took": f"{sum(m.fit + m.predict for m in journal.done.values()):.0f} s of one core to fit and validate",
        "missing": missing,
    }
    np.savez_compressed(
        target,
        allow_pickle=False,
        log_c=log_grid(),
        log_gamma=log_grid(),
        sizes=np.array(plan.sizes),
        repetitions=np.array(repeats),
        meta=np.array(json.dumps(meta)),
        **arrays,
    )
    return missing


def main(arguments: list[str] | None = None) -> int:
    """Command line: measure, then pack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", choices=["mnist", "covtype"], required=True)
    parser.add_argument("--source", type=Path, help="folder with mnist.npz / covtype.npz")
    parser.add_argument("--rows", type=int, required=True, help="training rows at the largest size")
    parser.add_argument("--valid", type=int, default=3000, help="validation rows")
    parser.add_argument("--test", type=int, default=5000, help="test rows")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(".cache/svm_grid"), help="folder of the journals")
    parser.add_argument("--pack", action="store_true", help="only pack what the journal has")
    parser.add_argument("--output", type=Path, help="the packed table (default: beside this file)")
    options = parser.parse_args(arguments)
    plan = Plan(options.data, options.rows, options.valid, options.test)
    path = options.cache / f"{plan.data}-{plan.rows}.jsonl"
    if options.pack and not path.exists():
        parser.error(f"there is no journal {path} to pack; run without --pack first")
    journal = Journal(path, plan)
    if not options.pack:
        if options.source is None:
            parser.error("--source is needed: the folder that holds the data")
        run(plan, options.source, journal, options.processes)
    target = options.output or HERE / f"{plan.data}.npz"
    missing = pack(plan, journal, target)
    print(f"wrote {target} ({target.stat().st_size / 1e3:.0f} kB)")
    for sentence in missing:
        print(sentence)
    return 0


if __name__ == "__main__":
    sys.exit(main())
