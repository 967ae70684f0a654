"""How long the report and the live page take, and whether an open page slows down a run.

    python -m benchmarks.page                # report of 1,000 trials, page update with 300 trials
    python -m benchmarks.page --run 240      # trials per minute with and without an open page, for 240 seconds

The second part needs Chromium and Linux. One run goes on while its page is opened and closed in blocks of random order.
The two blocks of each pair are compared, so that other work on the machine and the growing overhead of the run cancel
out. On a machine with much other work only the processor time per trial, and that of server and browser, are exact.
All is measured with one thread, as `fabolas dashboard` serves the page.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fabolas
from fabolas._types import Array
from fabolas.dashboard.watched import WatchedStudy
from fabolas.report import write_report
from fabolas.report.content import FIGURE_NAMES
from tests.helpers.browser import Browser, chromium
from tests.helpers.study_files import SIZE, SPACE, objective

_BLOCK = 15.0  # seconds with the page open, or closed
_SETTLING = 4.0  # seconds after opening and closing that do not count
_PROBLEM = """
import time
import fabolas

space = {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(0.0, 1.0), "kind": ["a", "b"]}
fidelities = {"size": (10, 1000)}

def objective(config, size):
    end = time.process_time() + 0.05  # a training of 50 ms of one processor
    while time.process_time() < end:
        pass
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + 1 / size
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", metavar="SECONDS", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0, help="of the order of the blocks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        if options.run:
            slowdown(folder, options.run, options.seed)
        else:
            report_of_1000(folder)
            update_with_300(folder)


def study_of(folder: Path, n: int) -> Path:
    """A study with n trials; the search itself suggests only the last ten, so that it is made in seconds."""
    path = folder / f"{n}.db"
    rng = np.random.default_rng(0)
    with fabolas.Study(SPACE, SIZE, seed=0, storage=path, overhead=0.05) as study:
        d, f = study.space.dim, study.space.n_fidelities
        for point in study.space.snap(rng.random((n - 10, d + f))):
            _record(study, study.ask_for(*study.space.decode(point)))
        for _ in range(10):
            _record(study, study.ask())
    return path


def _record(study: fabolas.Study, suggestion: fabolas.Suggestion) -> None:
    try:
        outcome = objective(suggestion.config, **suggestion.fidelity)
    except MemoryError as error:
        study.fail(suggestion, repr(error), cost=1.0)
    else:
        study.tell(suggestion, outcome.loss, cost=outcome.cost)


def report_of_1000(folder: Path) -> None:
    path = study_of(folder, 1000)
    started, used = time.perf_counter(), time.process_time()
    written = write_report(fabolas.load(path), folder / "report.html")
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    size = written.stat().st_size / 1e6
    print(f"report of 1,000 trials: {cpu:.2f} s of processor time, {wall:.1f} s by the clock, {size:.2f} MB")


def update_with_300(folder: Path) -> None:
    watched = WatchedStudy(study_of(folder, 300))
    for label in ("first", "next"):  # the first one also imports
        used = time.process_time()
        watched.overview()
        for name in FIGURE_NAMES:
            watched.figure(name)
        watched.trials()
        print(
            f"{label} update of a page with 300 trials: {time.process_time() - used:.2f} s of processor time"
        )
        os.utime(watched.path)


def slowdown(folder: Path, seconds: float, seed: int) -> None:
    """Open and close the page of one run in blocks of random order, and compare the two blocks of each pair."""
    problem, storage = folder / "problem.py", folder / "run.db"
    problem.write_text(_PROBLEM)
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    base = [sys.executable, "-m", "fabolas"]
    command = [*base, "run", str(problem), "--time-budget", "2h", "--storage", str(storage), "--quiet"]
    run = subprocess.Popen(command, env=one_thread)
    # As `fabolas run --dashboard` starts it: in a session of its own.
    server = subprocess.Popen(
        [*base, "dashboard", str(storage)],
        stderr=subprocess.PIPE,
        text=True,
        env=one_thread,
        start_new_session=True,
    )
    try:
        assert server.stderr is not None
        address = re.search(r"http://\S+/", server.stderr.readline())
        assert address is not None
        with chromium(folder / "profile") as browser:
            probe = Probe(run.pid, server.pid, browser.driver.service.process.pid)
            blocks = _blocks(browser, address[0], seconds, probe, np.random.default_rng(seed))
    finally:
        for process in (run, server):
            process.send_signal(signal.SIGKILL)
            process.wait()
    ended = np.array([trial.ended for trial in fabolas.load(storage).trials if trial.ended is not None])
    _print_comparison(blocks, ended)


@dataclass(frozen=True)
class Counters:
    """What the processes have used at one moment, in seconds.

    Attributes:
        time: Since the epoch.
        run: Processor time of the run.
        waited: For how long the run was ready and waited for a processor.
        server: Processor time of the server.
        browser: Processor time of all processes of the browser.
    """

    time: float
    run: float
    waited: float
    server: float
    browser: float


@dataclass(frozen=True)
class Probe:
    """Reads the counters of three processes."""

    run: int
    server: int
    browser: int

    def read(self) -> Counters:
        """Read all counters."""
        used, waited = (int(text) / 1e9 for text in _proc(self.run, "schedstat").split()[:2])
        browser = sum(_processor_seconds(pid) for pid in _descendants(self.browser))
        return Counters(time.time(), used, waited, _processor_seconds(self.server), browser)


@dataclass(frozen=True)
class Block:
    """An interval in which the page was open, or closed."""

    is_open: bool
    start: Counters
    end: Counters

    def share(self, name: str) -> float:
        """A counter per second of the block."""
        used = getattr(self.end, name) - getattr(self.start, name)
        return float(used / (self.end.time - self.start.time))


def _blocks(
    browser: Browser, address: str, seconds: float, probe: Probe, rng: np.random.Generator
) -> list[Block]:
    """Pairs of blocks: the page open and closed, in random order."""
    browser.open(address)  # once, so that the server has imported what it needs
    blocks = []
    for _ in range(int(seconds / (2 * _BLOCK))):
        for is_open in rng.permutation([True, False]).tolist():
            browser.driver.get(address if is_open else "about:blank")
            time.sleep(_SETTLING)
            start = probe.read()
            time.sleep(_BLOCK - _SETTLING)
            blocks.append(Block(is_open, start, probe.read()))
    return blocks


def _print_comparison(blocks: list[Block], ended: Array) -> None:
    """Print what the two blocks of each pair differ in.

    On a busy machine trials per minute depend on who else wants the processors. Processor time per trial does not.
    """
    trials = np.array([((block.start.time <= ended) & (ended < block.end.time)).sum() for block in blocks])
    minutes = np.array([block.end.time - block.start.time for block in blocks]) / 60.0
    processor = np.array([block.end.run - block.start.run for block in blocks])
    is_open = np.array([block.is_open for block in blocks])
    for name, values in (
        ("trials per minute", trials / minutes),
        ("processor seconds of the run per trial", processor / np.maximum(trials, 1)),
        ("processors that the run had", processor / (60.0 * minutes)),
    ):
        with_page, without = values[is_open], values[~is_open]
        ratios = np.log(with_page / without)  # one for each pair
        error = ratios.std(ddof=1) / np.sqrt(len(ratios))
        print(
            f"{name}: {with_page.mean():.3g} with an open page, {without.mean():.3g} without one; "
            f"ratio {np.exp(ratios.mean()):.3f} ± {error:.3f} (standard error of {len(ratios)} pairs)"
        )
    for name in ("server", "browser"):
        shares = [
            100 * np.mean([b.share(name) for b in blocks if b.is_open == each]) for each in (True, False)
        ]
        print(f"the {name} used {shares[0]:.2f} % of one processor with the page, {shares[1]:.2f} % without")
    print(
        f"the run waited for a processor in {100 * np.mean([b.share('waited') for b in blocks]):.0f} % of its time"
    )


def _proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def _processor_seconds(pid: int) -> float:
    """Processor time of a process and of its ended children; 0 if it has ended."""
    try:
        fields = _proc(pid, "stat").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> list[int]:
    """A process, its children, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdigit():
                parent = int(_proc(int(each.name), "stat").rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(each.name))
    found = [pid]
    for each_pid in found:  # grows
        found += children.get(each_pid, [])
    return found


if __name__ == "__main__":
    main()
