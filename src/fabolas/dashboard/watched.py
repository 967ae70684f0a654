"""Studies that are watched: a file is read when it has changed, and each part of its page is computed once."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fabolas.dashboard.comparison import compare
from fabolas.plots import CannotDraw
from fabolas.report.content import Overview, Panel, overview, panel, trials_table
from fabolas.storage import SQLITE_MAGIC
from fabolas.storage.lock import lock_owner
from fabolas.study import LoadedStudy, load

_SHORTEST_INTERVAL = 1.0  # seconds between two updates of a page
_IDLE_PER_BUSY = 25.0  # seconds without work for each second of work: less than 4 % of one processor


class Watched:
    """What a page shows, computed when it is asked for and kept until its files change. It can be used by threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._parts: dict[str, str] = {}
        self._version = ""
        self._busy = 0.0  # processor seconds for the present version

    def version(self) -> str:
        """Text that changes when the files change."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether a process uses one of the files."""
        raise NotImplementedError

    def interval(self) -> float:
        """Seconds from one update of the page to the next, long enough not to slow down a run on this machine."""
        with self._lock:
            return max(_SHORTEST_INTERVAL, _IDLE_PER_BUSY * self._busy)

    def part(self, name: str, compute: Callable[[], str]) -> str:
        """A part of the page as text of JSON: the kept one, or a new one if the files have changed."""
        with self._lock:
            self._forget_old()
            if name not in self._parts:
                started = time.thread_time()
                self._parts[name] = compute()
                self._busy += time.thread_time() - started
            return self._parts[name]

    def _forget_old(self) -> None:
        version = self.version()
        if version != self._version:
            self._version, self._parts, self._busy = version, {}, 0.0


class WatchedStudy(Watched):
    """A file of a study, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._study: tuple[str, LoadedStudy] | None = None
        self._overview: tuple[str, Overview] | None = None

    def version(self) -> str:
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
        """The study as its file is now.

        Raises:
            ValueError: If the file cannot be read.
        """
        with self._lock:
            version = self.version()
            if self._study is None or self._study[0] != version:
                started = time.thread_time()
                self._study = (version, load(self.path))
                self._forget_old()
                self._busy += time.thread_time() - started
            return self._study[1]

    def overview(self) -> Overview:
        """What the page says in words and numbers; running trials and the used budget as of now."""
        with self._lock:
            study = self.study()
            assert self._study is not None
            if self._overview is None or self._overview[0] != self._study[0]:
                started = time.thread_time()
                self._overview = (self._study[0], overview(study, time.time()))
                self._busy += time.thread_time() - started
            return self._overview[1].at(study.file, time.time())

    def figure(self, name: str) -> str:
        """A figure as text of JSON."""
        return self.part(f"figure {name}", lambda: panel(self.study(), name).as_json())

    def trials(self) -> str:
        """The table of trials as text of JSON."""
        return self.part("trials", lambda: json.dumps(trials_table(self.study())))


class WatchedDirectory(Watched):
    """A directory with files of studies. Files that are not studies are left out."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._known: dict[str, WatchedStudy] = {}

    def studies(self) -> dict[str, WatchedStudy]:
        """Name of the file -> its study, ordered by name."""
        with self._lock:
            names = sorted(path.name for path in self.path.iterdir() if _is_database(path))
            self._known = {name: self._known.get(name) or WatchedStudy(self.path / name) for name in names}
            return dict(self._known)

    def version(self) -> str:
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
            return Panel("comparison", compare(studies).to_json()).as_json()
        except CannotDraw as reason:
            return Panel("comparison", None, str(reason)).as_json()


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
