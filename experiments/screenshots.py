"""Make the pictures of figures, report and live page that are in the documentation.

    python -m experiments.screenshots --studies DIR     # run the searches if DIR does not have them, then take pictures

The searches tune the SVM of the demo on its 20,000 digits: one of 400 seconds, and two shorter ones for the page of a
directory. The pictures of pages need Chromium. The one of a running search is taken while another search runs.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fabolas
from fabolas.demo import svm
from fabolas.demo.data import digits
from fabolas.plots import FIGURES, save
from fabolas.report import write_report
from tests.helpers.browser import Browser, chromium
from tests.helpers.waiting import wait_until

FIGURES_DIR = Path(__file__).parents[1] / "docs/figures"
_DESKTOP, _PHONE = (1280, 1060), (390, 844)
_SAVED = ("curves", "contours", "calibration")  # as images of matplotlib
_STUDIES = {"digits": (0, "400s"), "digits-seed-1": (1, "120s"), "digits-seed-2": (2, "120s")}  # seed, budget


def main() -> None:
    """Run what is missing, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--studies", type=Path, required=True, help="directory of the studies")
    parser.add_argument("--output", type=Path, default=FIGURES_DIR)
    options = parser.parse_args()
    studies, output = options.studies, options.output
    studies.mkdir(parents=True, exist_ok=True)
    for name in _STUDIES:
        if not (studies / f"{name}.db").exists():
            search(studies / f"{name}.db", *_STUDIES[name])
    study = fabolas.load(studies / "digits.db")
    for name in _SAVED:
        save(FIGURES[name].compute(study), output / f"plots_{name}.png")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        chromium(Path(folder) / "profile") as browser,
    ):
        report = write_report(study, Path(folder) / "digits.html")
        picture(browser, report, output / "report.png", _DESKTOP)
        picture(browser, report, output / "report_dark.png", _DESKTOP, dark=True)
        with dashboard(studies) as address:
            picture(browser, address, output / "dashboard_directory.png", _DESKTOP)
        live(browser, Path(folder) / "digits.db", output / "live_phone.png")


def search(storage: Path, seed: int, budget: str) -> None:
    """Run one search."""
    sample = digits()
    fabolas.minimize(
        svm.Objective(sample),
        svm.SPACE,
        {"size": (svm.MIN_SIZE, len(sample.y_train))},
        time_budget=budget,
        seed=seed,
        storage=storage,
    )


def picture(
    browser: Browser, address: str | Path, path: Path, size: tuple[int, int], *, dark: bool = False
) -> None:
    """Take a picture of what is in view when a page is opened."""
    browser.show_as(size, "dark" if dark else "light")
    browser.open(address)
    time.sleep(1.0)  # until the figures are painted
    browser.screenshot(path, whole=False)
    assert browser.console() == []


@contextmanager
def dashboard(path: Path) -> Iterator[str]:
    """The address of a dashboard, in a process of its own."""
    command = [sys.executable, "-m", "fabolas", "dashboard", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            server.terminate()


def live(browser: Browser, storage: Path, path: Path) -> None:
    """Take a picture of the page of a running search after its first trials, on a phone."""
    code = f"from experiments.screenshots import search, Path; search(Path({str(storage)!r}), 3, '300s')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as run:
        try:
            wait_until(lambda: storage.exists() and len(fabolas.load(storage).trials) >= 20, 300.0)
            with dashboard(storage) as address:
                picture(browser, address, path, _PHONE)
        finally:
            run.kill()


if __name__ == "__main__":
    main()
