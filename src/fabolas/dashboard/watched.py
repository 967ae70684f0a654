"""Studies that are watched: a file is read when it has changed, and each part of its page is computed once."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from fabolas.dashboard.comparison import compare
from fabolas.dashboard.pace import UpdateRest
from fabolas.plots import CannotDraw
from fabolas.report.content import DrawnFigure, Overview, overview, panel, trials_table
from fabolas.storage import SQLITE_MAGIC
from fabolas.storage.lock import lock_owner
from fabolas.study import LoadedStudy, load


class Watched:
    """What a page shows, computed when it is asked for and kept until its files change. It can be used by threads.

    While a run goes on, changes are taken up after a rest (see ``pace.py``). Until then the page shows what it has.
    """

    def __init__(self, pace: UpdateRest) -> None:
        self._lock = threading.RLock()
        self._pace = pace
        self._parts: dict[str, str] = {}
        self._computed: set[str] = set()  # names of parts that were computed at least once
        self._version = ""

    def version(self) -> str:
        """Text that changes when there is something new to show."""
        with self._lock:
            if not self._version or self._pace.rested() or not self.running:
                newest = self._newest()
                if newest != self._version:
                    self._version, self._parts = newest, {}
            return self._version

    def _newest(self) -> str:
        """Text that changes when the files change."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether a process uses one of the files."""
        raise NotImplementedError

    def part(self, name: str, compute: Callable[[], str]) -> str:
        """A part of the page as text of JSON: the kept one, or a new one if there is a new version."""
        with self._lock:
            self.version()
            if name not in self._parts:
                with self._work(name):
                    self._parts[name] = compute()
            return self._parts[name]

    def _work(self, name: str) -> AbstractContextManager[None]:
        """Count the work in the body; the first time that this is computed is what opens a page."""
        first = name not in self._computed
        self._computed.add(name)
        return self._pace.work(free=first)


class WatchedStudy(Watched):
    """A file of a study, which may not exist yet."""

    def __init__(self, path: Path, pace: UpdateRest | None = None) -> None:
        super().__init__(pace or UpdateRest())
        self.path = path
        self._study: tuple[str, LoadedStudy] | None = None
        self._overview: tuple[str, Overview] | None = None

    def _newest(self) -> str:
        log = self.path.with_name(f"{self.path.name}-wal")
        return _digest(_stamp(self.path), _stamp(log), str(self._owner()))

    @property
    def running(self) -> bool:
        return self._owner() is not None

    def _owner(self) -> int | None:
        try:
            return lock_owner(self.path)
        except (OSError, ValueError):  # the file of the lock cannot be read: reading the study says why
            return None

    def study(self) -> LoadedStudy:
        """The study as its file was at the version that the page shows, or later.

        Raises:
            ValueError: If the file cannot be read.
        """
        with self._lock:
            version = self.version()
            if self._study is None or self._study[0] != version:
                with self._work("study"):
                    self._study = (version, load(self.path))
            return self._study[1]

    def overview(self) -> Overview:
        """What the page says in words and numbers; running trials and the used budget as of now."""
        with self._lock:
            study = self.study()
            assert self._study is not None
            if self._overview is None or self._overview[0] != self._study[0]:
                with self._work("overview"):
                    self._overview = (self._study[0], overview(study, time.time()))
            now = self._overview[1].at(study.file, time.time())
            return now if self._newest() == self._version else now.without_running_trials()

    def figure(self, name: str) -> str:
        """A figure as text of JSON."""
        return self.part(f"figure {name}", lambda: panel(self.study(), name).as_json())

    def trials(self) -> str:
        """The table of trials as text of JSON."""
        return self.part("trials", lambda: json.dumps(trials_table(self.study())))


class WatchedDirectory(Watched):
    """A directory with files of studies. Files that are not studies are left out."""

    def __init__(self, path: Path, pace: UpdateRest | None = None) -> None:
        super().__init__(pace or UpdateRest())
        self.path = path
        self._known: dict[str, WatchedStudy] = {}

    def studies(self) -> dict[str, WatchedStudy]:
        """Name of the file -> its study, ordered by name."""
        with self._lock:
            names = sorted(path.name for path in self.path.iterdir() if _is_database(path))
            self._known = {name: self._known.get(name) or self._watch(name) for name in names}
            return dict(self._known)

    def _watch(self, name: str) -> WatchedStudy:
        return WatchedStudy(self.path / name, self._pace)

    def _newest(self) -> str:
        return _digest(*(part for name, study in self.studies().items() for part in (name, study.version())))

    @property
    def running(self) -> bool:
        return any(study.running for study in self.studies().values())

    def loaded(self) -> dict[str, LoadedStudy | str]:
        """Name of the file -> its study, or why it cannot be read."""
        found: dict[str, LoadedStudy | str] = {}
        for name, watched in self.studies().items():
            try:
                found[name] = watched.study()
            except ValueError as error:
                found[name] = str(error)
        return found

    def comparison(self) -> str:
        """The figure that compares the studies, as text of JSON."""
        return self.part("comparison", self._compare)

    def _compare(self) -> str:
        studies = {name: each for name, each in self.loaded().items() if isinstance(each, LoadedStudy)}
        try:
            return DrawnFigure("comparison", compare(studies).to_json()).as_json()
        except CannotDraw as reason:
            return DrawnFigure("comparison", None, str(reason)).as_json()


def _stamp(path: Path) -> str:
    """Text that changes when the file changes; "-" without a file."""
    try:
        stat = path.stat()
    except OSError:
        return "-"
    return f"{stat.st_ino}.{stat.st_size}.{stat.st_mtime_ns}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _is_database(path: Path) -> bool:
    try:
        path.name.encode()  # a name that no address can contain is left out
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except (OSError, UnicodeEncodeError):
        return False
