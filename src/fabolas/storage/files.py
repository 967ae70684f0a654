"""Open the file of a study and the files beside it safely: only regular files, and no symbolic links planted there."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from fabolas.display import safe_text

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}
# Windows has none of these flags. O_NONBLOCK: opening a named pipe would otherwise wait for its other end.
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def resolve(path: str | Path) -> Path:
    """The absolute path, with ``~`` expanded and symbolic links followed.

    Raises:
        ValueError: If that is not possible, or the text is a URL.
    """
    text = str(path)
    if url := re.match(r"(?P<kind>\w+)(\+\w+)?:/+", text):
        file = f"write {text[url.end() :]!r}" if url["kind"] == "sqlite" else "give the name of a file"
        raise ValueError(f"storage must be a path, got the URL {text!r}; {file}")
    try:
        found = Path(path).expanduser().resolve()
    except (RuntimeError, OSError, ValueError) as error:  # no such user, a loop of links, a NUL character
        raise ValueError(f"storage must be a path, got {text!r}: {error}") from error
    # From Python 3.13 on, `resolve` returns a loop as it is. Unlike `Path.is_symlink`, this never raises.
    if os.path.islink(found):  # noqa: PTH114
        raise ValueError(f"storage must be a path, got {text!r}: a loop of symbolic links")
    return found


def kind_of(path: Path) -> str:
    """What is at this path, if it is not a regular file: "a directory", for example. Empty for a file or nothing.

    Raises:
        OSError: If it cannot be found out.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return ""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no regular file")


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file. Symbolic links are not followed, and named pipes do not block.

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If it is not a regular file.
    """
    if path.is_symlink():
        raise ValueError(f"{safe_text(path)} must be a regular file, but is a symbolic link; delete it")
    fd = os.open(path, flags | _SAFE_FLAGS, 0o666)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise ValueError(
            f"{safe_text(path)} must be a regular file, but is {_KINDS.get(stat.S_IFMT(mode), 'something else')}; "
            "delete it"
        )
    return fd


def create_draft(path: Path) -> Path:
    """Create an empty file in the directory of ``path``. Its name cannot be guessed."""
    draft = path.with_name(f"{path.name}-fabolas-new-{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS, 0o666))
    return draft


def remove_drafts(path: Path) -> None:
    """Delete the drafts that killed processes left. The caller holds the lock on ``path``."""
    prefix = f"{path.name}-fabolas-new-"
    with contextlib.suppress(OSError):
        for other in path.parent.iterdir():
            if other.name.startswith(prefix):
                other.unlink()


def unused_name(path: Path, word: str) -> Path:
    """A name beside ``path`` that no file has: ``run-rescued.db``, ``run-rescued-2.db`` and so on."""
    for number in range(1, 10_000):
        name = f"{path.stem}-{word}{'' if number == 1 else f'-{number}'}{path.suffix}"
        if not os.path.lexists(path.with_name(name)):
            return path.with_name(name)
    raise FileExistsError(f"all names such as {path.stem}-{word}{path.suffix} are in use")
