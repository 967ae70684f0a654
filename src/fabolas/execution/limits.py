"""How much time and memory one trial may use."""

import os
import re
import sys
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Literal

from fabolas.budget import Duration, seconds_of

# The timeout "auto" is long: if a good trial were killed, its failure would mislead the models.
_AUTO_FACTOR = 10.0  # times the predicted cost
_AUTO_FACTOR_UNPREDICTED = 100.0  # times the longest complete trial, if nothing predicts the cost
_AUTO_MIN_SECONDS = 30.0

# Name of a unit in lower case -> bytes: "kb" and "k" are 1000, "kib" is 1024.
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}{'b' * b}": 1000**power for power, letter in enumerate("kmgt", 1) for b in (0, 1)}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_REMEDY = "give a number of bytes, or text such as '500MB', '2GB' or '2GiB'"


@dataclass(frozen=True)
class Limits:
    """What one trial may use.

    Attributes:
        seconds: Time; "auto" derives it from the predicted cost; None for no limit.
        memory: Bytes of physical memory; None for no limit.
    """

    seconds: float | Literal["auto"] | None = None
    memory: int | None = None

    @classmethod
    def of(cls, trial_timeout: Duration | None, trial_memory: float | str | None) -> "Limits":
        """The limits as the user writes them.

        Raises:
            ValueError: If one cannot be parsed, or cannot be observed on this system.
            TypeError: If one has the wrong type.
        """
        seconds: float | Literal["auto"] | None = None
        if trial_timeout == "auto":
            seconds = "auto"
        elif trial_timeout is not None:
            seconds = seconds_of(trial_timeout, "trial_timeout")
        if trial_memory is None:
            return cls(seconds)
        check_resident_memory()
        return cls(seconds, bytes_of(trial_memory))

    def __bool__(self) -> bool:
        return self.seconds is not None or self.memory is not None

    def timeout(self, predicted: float | None, longest: float | None) -> float | None:
        """Seconds that a trial may take; None for no limit.

        Args:
            predicted: Predicted cost of the trial in seconds; None if there is no prediction.
            longest: Seconds of the longest complete trial; None if there is none.
        """
        if self.seconds != "auto":
            return self.seconds
        if predicted is not None:
            return max(_AUTO_FACTOR * predicted, _AUTO_MIN_SECONDS)
        return None if longest is None else max(_AUTO_FACTOR_UNPREDICTED * longest, _AUTO_MIN_SECONDS)


NO_LIMITS = Limits()


def bytes_of(amount: float | str, what: str = "trial_memory") -> int:
    """Bytes of an amount such as 2e9, "2GB" or "1.5 GiB".

    Raises:
        ValueError: If the text cannot be parsed or the amount is not positive.
        TypeError: If it is neither a number nor text.
    """
    if isinstance(amount, str):
        match = _AMOUNT.fullmatch(amount.strip())
        unit = None if match is None else _UNITS.get(match[2].lower())
        if match is None or unit is None:
            raise ValueError(f"{what} must be an amount of bytes, got {amount!r}; {_REMEDY}")
        size = float(match[1]) * unit
    elif isinstance(amount, Real) and not isinstance(amount, bool):
        size = float(amount)
    else:
        raise TypeError(f"{what} must be a number or text, got {amount!r}; {_REMEDY}")
    if not 1 <= size < float("inf"):
        raise ValueError(f"{what} must be at least one byte and finite, got {amount!r}; {_REMEDY}")
    return int(size)


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
