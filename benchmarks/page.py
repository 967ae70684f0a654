"""How long the report and the live page take, and whether an open page slows down a run.

    python -m benchmarks.page                # report of 1,000 trials, page update with 300 trials
    python -m benchmarks.page --run 240      # also trials per minute with and without an open page, for 240 seconds

The second part needs Chromium. One run goes on while a page is opened and closed in turn; neighbouring intervals are
compared, so that other work on the machine and the growing overhead of the run cancel out.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fabolas
from fabolas.dashboard.watched import WatchedStudy
from fabolas.report import write_report
from fabolas.report.content import FIGURE_NAMES
from tests.helpers.browser import Browser, chromium
from tests.helpers.study_files import SIZE, SPACE, objective

_INTERVAL = 20.0  # seconds with the page open, and with the page closed
_SETTLING = 6.0  # seconds after opening and closing that do not count
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
    seconds = parser.parse_args().run
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        report_of_1000(folder)
        update_with_300(folder)
        if seconds:
            slowdown(folder, seconds)


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


def slowdown(folder: Path, seconds: float) -> None:
    problem, storage = folder / "problem.py", folder / "run.db"
    problem.write_text(_PROBLEM)
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    base = [sys.executable, "-m", "fabolas"]
    run = subprocess.Popen(
        [*base, "run", str(problem), "--time-budget", "2h", "--storage", str(storage), "--quiet"],
        env=one_thread,
    )
    server = subprocess.Popen(
        [*base, "dashboard", str(storage)], stderr=subprocess.PIPE, text=True, env=one_thread
    )
    try:
        assert server.stderr is not None
        address = re.search(r"http://\S+/", server.stderr.readline())
        assert address is not None
        with chromium(folder / "profile") as browser:
            edges = _open_and_close(browser, address[0], seconds)
        used = _processor_seconds(server.pid)
    finally:
        for process in (run, server):
            process.send_signal(signal.SIGKILL)
            process.wait()
    _compare(storage, edges)
    print(f"the server used {100 * used / (edges[-1] - edges[0]):.1f} % of one processor")


def _open_and_close(browser: Browser, address: str, seconds: float) -> list[float]:
    """Beginning and end of each interval, with the page open and closed in turn, in seconds since the epoch."""
    browser.open(address)
    edges = []
    for i in range(int(seconds / _INTERVAL) // 2 * 2):
        browser.driver.get(address if i % 2 == 0 else "about:blank")
        time.sleep(_SETTLING)
        edges.append(time.time())
        time.sleep(_INTERVAL - _SETTLING)
        edges.append(time.time())
    return edges


def _compare(storage: Path, edges: list[float]) -> None:
    ended = np.array([trial.ended for trial in fabolas.load(storage).trials if trial.ended is not None])
    counts = (np.histogram(ended, bins=edges)[0] / np.diff(edges) * 60.0)[0::2]
    with_page, without = counts[0::2], counts[1::2]
    # Each interval with the page is compared with the mean of those before and after it.
    around = 0.5 * (without[:-1] + without[1:])
    ratio = with_page[1:] / around
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    print(f"trials per minute: {with_page.mean():.0f} with an open page, {without.mean():.0f} without one")
    print(f"with / without: {ratio.mean():.3f} ± {error:.3f} (standard error of {len(ratio)} comparisons)")


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
