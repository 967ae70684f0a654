"""The problem of the tests of the command line, and what a command returns."""

from collections.abc import Callable
from typing import NamedTuple

PROBLEM = """
import fabolas

space = {"C": fabolas.Float(1e-3, 1e3, log=True), "kernel": ["rbf", "poly"]}
fidelities = {"size": (10, 1000)}
strategy = "random"

def objective(config, size):
    if config["C"] > 100:
        raise MemoryError("kernel matrix too large")
    return fabolas.Outcome(config["C"] / 100, cost=2.0, info={"rows": size})
"""


class Ended(NamedTuple):
    """The exit code of a command and what it printed."""

    code: int
    out: str
    err: str


Fabolas = Callable[..., Ended]
