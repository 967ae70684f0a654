"""Bad objectives, by name. ``tests.faults.objectives`` runs each with one and with two workers.

An objective is bad in half of the space and returns ``config["x"]`` in the other half, so that a run has both: the
bad trials must have the status that is expected, and the good ones must not notice.
"""

import asyncio
import atexit
import concurrent.futures
import ctypes
import gc
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import fabolas

Config = dict[str, Any]
Act = Callable[[Config], Any]
BORDER = 0.5  # an objective is bad below it


@dataclass(frozen=True)
class Kind:
    """A kind of bad objective.

    Attributes:
        group: "raises", "returns", "does", "dies" or "hangs".
        act: What it does with a bad configuration; in the group "returns" its value is returned.
        status: The status that a bad trial must have.
        loss: The loss that a bad trial must have if it is complete; None for ``config["x"]``.
        stops: Whether the run may end early, as after Ctrl-C.
        limits: Limits of a trial.
    """

    group: str
    act: Act
    status: str = "failed"
    loss: float | None = None
    stops: bool = False
    limits: dict[str, Any] = field(default_factory=dict)


KINDS: dict[str, Kind] = {}


def raises(name: str, error: Callable[[], BaseException], *, stops: bool = False) -> None:
    def act(config: Config) -> None:
        raise error()

    KINDS[f"raises {name}"] = Kind("raises", act, stops=stops)


def returns(name: str, value: Callable[[], Any], loss: float | None = None) -> None:
    status = "failed" if loss is None else "complete"
    KINDS[f"returns {name}"] = Kind("returns", lambda config: value(), status, loss)


def does(name: str) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        KINDS[name] = Kind("does", act, "complete")
        return act

    return add


class BadTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class NeedsArgumentsError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__("cannot be unpickled")


class Odd(BaseException):
    pass


def with_lock() -> Exception:
    return ValueError("holds a lock", threading.Lock())


def chained_in_a_circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def with_bad_notes() -> Exception:
    error = ValueError("bad notes")
    error.__notes__ = [1, BadTextError(), "\x1b[2J"]
    return error


def recursive(config: Config) -> Any:
    return recursive(config)


def undecodable() -> Exception:
    return UnicodeDecodeError("utf-8", b"\xff\xfe", 0, 1, "invalid start byte")


raises("ValueError", lambda: ValueError("bad value"))
raises("an exception without text", Exception)
raises("KeyError", lambda: KeyError("missing"))
raises("StopIteration", lambda: StopIteration(1))
raises("GeneratorExit", GeneratorExit)
raises("AssertionError", AssertionError)
raises("MemoryError", lambda: MemoryError("no room"))
raises("sys.exit()", SystemExit)
raises("sys.exit(3)", lambda: SystemExit(3))
raises("sys.exit(text)", lambda: SystemExit("text"))
raises("its own BaseException", lambda: Odd("odd"))
raises("an exception whose text raises", BadTextError)
raises("an exception that cannot be pickled", with_lock)
raises("an exception that cannot be unpickled", lambda: NeedsArgumentsError("a", "b"))
raises("a circle of causes", chained_in_a_circle)
raises("bad notes", with_bad_notes)
raises("ExceptionGroup", lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]))
raises("BaseExceptionGroup", lambda: BaseExceptionGroup("several", [SystemExit(1), Odd()]))
raises("asyncio.CancelledError", asyncio.CancelledError)
raises("futures.CancelledError", concurrent.futures.CancelledError)
raises("BrokenExecutor", lambda: concurrent.futures.BrokenExecutor("broken"))
raises("TimeoutError", TimeoutError)
raises("BrokenPipeError", lambda: BrokenPipeError(32, "Broken pipe"))
raises("EOFError", EOFError)
raises("UnicodeDecodeError", undecodable)
raises("a lone surrogate", lambda: ValueError("\udcff"))
raises("NUL bytes", lambda: ValueError("a\0b"))
raises("escape sequences", lambda: ValueError("\x1b]0;title\x07\x1b[2J[/a]<script>"))
raises("ten megabytes of text", lambda: ValueError("x" * 10_000_000))
raises("KeyboardInterrupt", KeyboardInterrupt, stops=True)
KINDS["recurses without end"] = Kind("raises", recursive)


class FloatRaises:
    def __float__(self) -> float:
        raise ValueError("not a number")


class FloatExits(Fraction):
    def __float__(self) -> float:
        sys.exit("from __float__")


class ReprRaises:
    def __repr__(self) -> str:
        raise ValueError("no repr")


class ReprExits:
    def __repr__(self) -> str:
        sys.exit("from __repr__")


class LongRepr:
    def __repr__(self) -> str:
        return "x" * 50_000_000


class NanFloat(float):
    def __float__(self) -> float:
        return float("nan")


def endless_info() -> dict[str, Any]:
    info: dict[str, Any] = {}
    info["self"] = info
    return info


returns("NaN", lambda: float("nan"))
returns("infinity", lambda: float("inf"))
returns("minus infinity", lambda: -np.inf)
returns("None", lambda: None)
returns("text", lambda: "0.5")
returns("bytes", lambda: b"0.5")
returns("True", lambda: True)
returns("numpy's True", lambda: np.bool_(True))
returns("a list", lambda: [0.1])
returns("a dict", lambda: {"loss": 0.1})
returns("an array of two", lambda: np.array([0.1, 0.2]))
returns("an empty array", lambda: np.array([]))
returns("a masked value", lambda: np.ma.masked)
returns("a masked array", lambda: np.ma.array(0.1, mask=True))
returns("an object array", lambda: np.array(None, dtype=object))
returns("a complex number", lambda: complex(0.1, 0.0))
returns("a duration", lambda: timedelta(seconds=1))
returns("a numpy duration", lambda: np.timedelta64(1, "s"))
returns("Decimal NaN", lambda: Decimal("nan"))
returns("an integer of 400 digits", lambda: 10**400)
returns("a function", lambda: lambda: 0.1)
returns("a generator", lambda: (x for x in [0.1]))
returns("a lock", threading.Lock)
returns("a future", concurrent.futures.Future)
returns("a coroutine function", lambda: asyncio.sleep)
returns("a class", lambda: float)
returns("an object whose float raises", FloatRaises)
returns("a number whose float exits", FloatExits)
returns("a float whose float is NaN", lambda: NanFloat(0.1))
returns("an object whose repr raises", ReprRaises)
returns("an object whose repr exits", ReprExits)
returns("an object with a repr of 50 megabytes", LongRepr)
returns("an Outcome of NaN", lambda: fabolas.Outcome(float("nan")))
returns("an Outcome with cost -1", lambda: fabolas.Outcome(0.1, cost=-1.0))
returns("an Outcome with info that holds itself", lambda: fabolas.Outcome(0.1, info=endless_info()))
returns("an Outcome with a lock as info", lambda: fabolas.Outcome(0.1, info={"lock": threading.Lock()}), 0.1)
returns("a loss above 1e100", lambda: 1e300)
returns("the largest float", lambda: sys.float_info.max)
returns("a loss below -1e100", lambda: -1e300)
returns("the largest loss", lambda: 1e100, 1e100)
returns("the lowest loss", lambda: -1e100, -1e100)
returns("the smallest float", lambda: 5e-324, 5e-324)
returns("a 0-d array", lambda: np.array(0.25), 0.25)
returns("float32", lambda: np.float32(0.25), 0.25)
returns("Decimal", lambda: Decimal("0.25"), 0.25)
returns("Fraction", lambda: Fraction(1, 4), 0.25)


@does("prints escape sequences")
def _(config: Config) -> None:
    print("\x1b]0;title\x07\x1b[2J\x1b]52;c;ZWNobyBoaQ==\x07", flush=True)


@does("prints ten megabytes")
def _(config: Config) -> None:
    print("x" * 10_000_000)


@does("prints bytes that are not text")
def _(config: Config) -> None:
    os.write(1, b"\xff\xfe\x00")


@does("closes sys.stdout and sys.stderr")
def _(config: Config) -> None:
    sys.stdout.close()
    sys.stderr.close()


@does("closes file descriptors 0, 1 and 2")
def _(config: Config) -> None:
    os.closerange(0, 3)


@does("removes sys.stdout")
def _(config: Config) -> None:
    sys.stdout = sys.stderr = sys.stdin = None  # type: ignore[assignment]


@does("changes the configuration")
def _(config: Config) -> None:
    config["layers"].append(1000)
    config.clear()
    config["x"] = "changed"


@does("changes the current directory and removes it")
def _(config: Config) -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)


@does("clears os.environ")
def _(config: Config) -> None:
    os.environ.clear()


@does("clears sys.path")
def _(config: Config) -> None:
    sys.path.clear()


@does("forgets modules")
def _(config: Config) -> None:
    for name in ("json", "traceback", "copy", "pickle", "fabolas.trials"):
        sys.modules.pop(name, None)


@does("seeds all random numbers")
def _(config: Config) -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - that is the fault


@does("sets np.seterr(all='raise')")
def _(config: Config) -> None:
    np.seterr(all="raise")


@does("turns warnings into errors")
def _(config: Config) -> None:
    warnings.simplefilter("error")


@does("warns")
def _(config: Config) -> None:
    warnings.warn("a warning of the objective", RuntimeWarning, stacklevel=2)


@does("ignores all signals")
def _(config: Config) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)


@does("leaks threads")
def _(config: Config) -> None:
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(1000,)).start()


@does("leaves a thread that raises")
def _(config: Config) -> None:
    threading.Thread(target=lambda: 1 / 0).start()


@does("leaks file descriptors")
def _(config: Config) -> None:
    for _ in range(50):
        os.open(os.devnull, os.O_RDONLY)


@does("leaves a child process behind")
def _(config: Config) -> None:
    subprocess.Popen(["sleep", "1000"])


@does("leaves a child process in a session of its own")
def _(config: Config) -> None:
    subprocess.Popen(["sleep", "1000"], start_new_session=True)


@does("forks and both return")
def _(config: Config) -> None:
    os.fork()


@does("forks and the child raises")
def _(config: Config) -> None:
    if os.fork() == 0:
        raise ValueError("the child")


@does("forks and the child exits")
def _(config: Config) -> None:
    child = os.fork()
    if child == 0:
        sys.exit(1)
    os.waitpid(child, 0)


@does("forks and the child prints and sleeps")
def _(config: Config) -> None:
    if os.fork() == 0:
        print("the child")
        time.sleep(1.0)


@does("registers an exit function that raises")
def _(config: Config) -> None:
    atexit.register(lambda: 1 / 0)


@does("sets a low recursion limit")
def _(config: Config) -> None:
    sys.setrecursionlimit(200)


@does("traces every line")
def _(config: Config) -> None:
    sys.settrace(lambda *_: None)


@does("disables the garbage collector")
def _(config: Config) -> None:
    gc.disable()


@does("sets umask to 0o777")
def _(config: Config) -> None:
    os.umask(0o777)


@does("limits open files")
def _(config: Config) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def dies(name: str, act: Act) -> None:
    KINDS[f"dies by {name}"] = Kind("dies", act)


dies("os._exit(0)", lambda config: os._exit(0))
dies("os._exit(3)", lambda config: os._exit(3))
dies("os.abort()", lambda config: os.abort())
dies("SIGKILL", lambda config: os.kill(os.getpid(), signal.SIGKILL))
dies("SIGTERM", lambda config: os.kill(os.getpid(), signal.SIGTERM))
dies("SIGSEGV", lambda config: os.kill(os.getpid(), signal.SIGSEGV))
dies("a null pointer", lambda config: ctypes.string_at(0))


def hangs(name: str, act: Act) -> None:
    KINDS[f"hangs in {name}"] = Kind("hangs", act, limits={"trial_timeout": 0.3})


def loop(config: Config) -> None:
    while True:
        pass


def deaf_sleep(config: Config) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1000)


def catches_everything(config: Config) -> None:
    while True:
        try:
            time.sleep(1000)
        except BaseException:  # noqa: BLE001 - that is the fault
            continue


hangs("time.sleep", lambda config: time.sleep(1000))
hangs("a loop", loop)
hangs("a sleep that ignores signals", deaf_sleep)
hangs("a loop that catches everything", catches_everything)
hangs("a regular expression that holds the interpreter's lock", lambda c: re.match("(a+)+$", "a" * 60 + "b"))
hangs("SIGSTOP", lambda config: os.kill(os.getpid(), signal.SIGSTOP))
hangs("threading.Lock", lambda config: [lock := threading.Lock(), lock.acquire(), lock.acquire()])
KINDS["takes more memory than trial_memory"] = Kind(
    "hangs", lambda config: [bytearray(1_500_000_000), time.sleep(1000)], limits={"trial_memory": "1GB"}
)


class Bad:
    """The objective of a kind; it is found by its name, so that workers can import it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, config: Config, size: int) -> Any:
        x, kind = config["x"], KINDS.get(self.name)
        if kind is None or x >= BORDER:
            return x
        value = kind.act(config)
        return value if kind.group == "returns" else x
