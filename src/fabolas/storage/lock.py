"""One process at a time uses the file of a study.

The operating system releases the lock when its owner dies. The library ``filelock`` is not used: it cannot tell who
owns a lock without trying to take it, and a child forked by C code keeps its ``flock`` when the parent is killed
(docs/decisions/libraries.md).
"""

import contextlib
import os
import struct
import sys
from pathlib import Path

from fabolas.display import safe_text
from fabolas.storage.base import UnwritableError
from fabolas.storage.files import open_regular

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _owner_of(fd: int) -> int | None:
        if _try_lock(fd):
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
            return None
        os.lseek(fd, 1, os.SEEK_SET)
        return int(os.read(fd, 20))

else:
    import fcntl

    # A POSIX record lock belongs to one process. A child that the objective forks does not inherit it, so the
    # child cannot keep the file locked after its parent was killed. (With flock it could.)
    def _try_lock(fd: int) -> bool:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    # The C structure flock. Linux has its fields in another order than BSD and macOS.
    _LINUX = sys.platform.startswith("linux")
    _STRUCT_FLOCK = "@hhqqi0q" if _LINUX else "@qqihh0q"

    def _owner_of(fd: int) -> int | None:
        kind, whence, start, length = fcntl.F_WRLCK, os.SEEK_SET, 0, 0
        wanted = (kind, whence, start, length, 0) if _LINUX else (start, length, 0, kind, whence)
        found = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(_STRUCT_FLOCK, *wanted))
        fields = struct.unpack(_STRUCT_FLOCK, found)
        kind, pid = (fields[0], fields[4]) if _LINUX else (fields[3], fields[2])
        return None if kind == fcntl.F_UNLCK else int(pid)


_MAX_ATTEMPTS = 1000  # to take a lock whose file is deleted at the same moment by its last owner
# The lock files that this process has locked. A record lock does not keep the same process from locking again.
_locked_here: set[Path] = set()


def _lock_file(path: Path) -> Path:
    """The file that is locked instead of ``path``. ``release`` deletes it, so no other program may use its name."""
    return path.with_name(path.name + "-fabolas-lock")


def lock_owner(path: Path) -> int | None:
    """The id of the process that uses the file; None if no process does. This does not take the lock.

    Raises:
        OSError: If the lock file cannot be read.
        ValueError: If it is not a regular file.
    """
    lock = _lock_file(path)
    if lock in _locked_here:  # to open and close the lock file again would release the lock
        return os.getpid()
    try:
        fd = open_regular(lock, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _owner_of(fd)
    finally:
        os.close(fd)


class FileLock:
    """Exclusive use of ``path`` from construction until ``release``.

    The lock is on a file ``<name>-fabolas-lock`` in the same directory, which ``release`` deletes. A killed process
    leaves that file, but not the lock on it.

    Raises:
        RuntimeError: If another study uses the file, in this process or in another one.
        UnwritableError: If the lock file cannot be created.
        ValueError: If the lock file is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self._path = _lock_file(path)
        if self._path in _locked_here:
            raise RuntimeError(
                f"{safe_text(path)} is in use by another study of this process; close that study first (study.close())"
            )
        self._fd: int | None = self._acquire(path)
        self._pid = os.getpid()
        _locked_here.add(self._path)

    def _acquire(self, path: Path) -> int:
        for _ in range(_MAX_ATTEMPTS):
            try:
                fd = open_regular(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise UnwritableError(
                    f"{safe_text(path)} cannot be used: {safe_text(self._path.name)} cannot be created in its "
                    f"directory ({error.strerror}); choose a directory that you may write to"
                ) from error
            if not _try_lock(fd):
                owner = os.pread(fd, 20, 1).decode(errors="replace").strip() if hasattr(os, "pread") else ""
                os.close(fd)
                raise RuntimeError(
                    f"{safe_text(path)} is in use by another process{f' (pid {owner})' if owner else ''}; "
                    "wait until it ends, or choose another file"
                )
            if self._is_current(fd):
                self._write_owner(fd, path)
                return fd
            os.close(fd)
        raise RuntimeError(
            f"{safe_text(path)} is opened and closed by other processes all the time; choose another file"
        )

    def _write_owner(self, fd: int, path: Path) -> None:
        # The lock is on byte 0. On Windows no other process can read that byte, so the process id comes after it.
        try:
            os.ftruncate(fd, 0)
            os.write(fd, f" {os.getpid()}\n".encode())
        except OSError as error:
            self._path.unlink(missing_ok=True)
            os.close(fd)
            raise UnwritableError(
                f"{safe_text(path)} cannot be used: nothing can be written in its directory ({error.strerror}); "
                "free some space, or choose another directory"
            ) from error

    def _is_current(self, fd: int) -> bool:
        """Whether the locked file still has its name. Its last owner may have deleted it in between."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.lstat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock. A second call does nothing, nor does a call in a forked child."""
        if self._fd is None or os.getpid() != self._pid:
            return
        # Delete first, unlock second: a process that opened the file in between sees that it has no name any more.
        # Windows cannot delete an open file; there the file stays, unlocked.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            self._path.unlink()
        os.close(self._fd)
        self._fd = None
        _locked_here.discard(self._path)
