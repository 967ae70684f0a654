"""One process at a time on a study's file, by a lock of the operating system that dies with its holder."""

import contextlib
import os
import struct
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _locked_by(fd: int) -> int | None:
        if _try_lock(fd):
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
            return None
        os.lseek(fd, 1, os.SEEK_SET)
        return int(os.read(fd, 20))

else:
    import fcntl

    # A POSIX record lock, not flock: it belongs to the process, so that a child forked by the objective does
    # not keep the file locked after its parent was killed.
    def _try_lock(fd: int) -> bool:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    # The C library's record of a lock; Linux has it in one order, the others in another.
    _LINUX = sys.platform.startswith("linux")
    _FLOCK = "@hhqqi0q" if _LINUX else "@qqihh0q"

    def _locked_by(fd: int) -> int | None:
        kind, whence, start, length = fcntl.F_WRLCK, os.SEEK_SET, 0, 0
        wanted = (kind, whence, start, length, 0) if _LINUX else (start, length, 0, kind, whence)
        found = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(_FLOCK, *wanted))
        fields = struct.unpack(_FLOCK, found)
        kind, pid = (fields[0], fields[4]) if _LINUX else (fields[3], fields[2])
        return None if kind == fcntl.F_UNLCK else int(pid)


# A record lock does not exclude its own process; this does.
_held: set[Path] = set()


def _beside(path: Path) -> Path:
    """The file that is locked: of a name that nobody else gives a file, since it is removed in the end."""
    return path.with_name(path.name + "-fabolas-lock")


def holder(path: Path) -> int | None:
    """The process that has the file now, None if nobody has; asks without taking the lock."""
    lock = _beside(path)
    if lock in _held:  # to open and close it here would give up our own record lock
        return os.getpid()
    try:
        fd = os.open(lock, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _locked_by(fd)
    finally:
        os.close(fd)


class FileLock:
    """Exclusive use of ``path`` from creation to ``release``, or an error that says who has it.

    The lock lies beside the file as ``<name>-fabolas-lock`` and is removed on release. A killed process leaves that
    file behind, but not the lock.

    Raises:
        RuntimeError: If another study, here or in another process, has the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = _beside(path)
        if self._path in _held:
            raise RuntimeError(
                f"{path} is in use by another study of this process; close that one first (study.close())"
            )
        self._fd: int | None = self._acquire(path)
        self._pid = os.getpid()
        _held.add(self._path)

    def _acquire(self, path: Path) -> int:
        while True:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            if not _try_lock(fd):
                holder = os.pread(fd, 20, 1).decode(errors="replace").strip() if hasattr(os, "pread") else ""
                os.close(fd)
                raise RuntimeError(
                    f"{path} is in use by another process{f' (pid {holder})' if holder else ''}; "
                    "wait until it ends, or choose another file"
                )
            if self._is_current(fd):
                # Byte 0 is the locked one; Windows lets nobody read it.
                os.ftruncate(fd, 0)
                os.write(fd, f" {os.getpid()}\n".encode())
                return fd
            os.close(fd)

    def _is_current(self, fd: int) -> bool:
        """Whether the locked file is still the one at the path, and was not removed by its last holder."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the file free; a second call does nothing, nor does one in a forked child."""
        if self._fd is None or os.getpid() != self._pid:
            return
        # Removed while still locked: whoever opened it in between sees that it is no longer at the path.
        # Windows does not remove an open file; there it stays, unlocked.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            self._path.unlink()
        os.close(self._fd)
        self._fd = None
        _held.discard(self._path)
