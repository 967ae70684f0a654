"""How much physical memory a process uses."""

import os
import sys
from pathlib import Path


def resident_memory(pid: int) -> int:
    """Bytes of physical memory that a process uses; 0 if it has ended."""
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


def check_resident_memory() -> None:
    """Check that ``resident_memory`` works here.

    Raises:
        ValueError: If it needs a package that is not installed.
    """
    try:
        resident_memory(os.getpid())
    except ImportError:
        raise ValueError(
            f"trial_memory needs psutil to measure the memory of a process on {sys.platform}; "
            "install it with: pip install psutil"
        ) from None
