"""How much memory a process holds, and how people write such amounts."""

import os
import re
import sys
from numbers import Real
from pathlib import Path

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}{'b' * b}": 1000**power for power, letter in enumerate("kmgt", 1) for b in (0, 1)}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_REMEDY = "give bytes as a number, or text such as '500MB', '2GB' or '2GiB'"


def bytes_of(amount: float | str) -> int:
    """Bytes of an amount such as 2e9, "2GB" or "1.5 GiB".

    Raises:
        ValueError: If the text cannot be read or the amount is not positive.
        TypeError: If it is neither a number nor text.
    """
    if isinstance(amount, str):
        match = _AMOUNT.fullmatch(amount.strip())
        unit = None if match is None else _UNITS.get(match[2].lower())
        if match is None or unit is None:
            raise ValueError(f"trial_memory must be an amount of memory, got {amount!r}; {_REMEDY}")
        size = float(match[1]) * unit
    elif isinstance(amount, Real) and not isinstance(amount, bool):
        size = float(amount)
    else:
        raise TypeError(f"trial_memory must be a number or text, got {amount!r}; {_REMEDY}")
    if not 1 <= size < float("inf"):
        raise ValueError(f"trial_memory must be at least one byte and finite, got {amount!r}; {_REMEDY}")
    return int(size)


def resident(pid: int) -> int:
    """Bytes of physical memory that a process holds; 0 if it has ended."""
    if sys.platform == "linux":
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def check_resident() -> None:
    """Refuse to limit what cannot be seen.

    Raises:
        ValueError: If the memory of another process cannot be read here.
    """
    try:
        resident(os.getpid())
    except ImportError:
        raise ValueError(
            f"trial_memory needs psutil to see the memory of a process on {sys.platform}; "
            "install it with: pip install psutil"
        ) from None
