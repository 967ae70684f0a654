"""Studies of every kind that a figure has to cope with."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from ConfigSpace import (
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
)
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space
from tests.helpers.hostile import HOSTILE
from tests.helpers.views import View, view_of

SIZE = {"size": (100, 10_000)}
SVM = {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-4, 1.0, log=True)}


def bowl(config: dict[str, Any], fidelity: dict[str, float]) -> float:
    """Lowest where all numbers are at 0.3 of their order of magnitude; smaller with more of every fidelity."""
    numbers = [float(value) for value in config.values() if isinstance(value, int | float)]
    base = sum((np.log10(abs(number) + 1e-3) + 0.5) ** 2 for number in numbers)
    smaller = sum(10.0 / value for value in fidelity.values())
    return float(0.05 + 0.02 * base + smaller)


def fails(config: dict[str, Any], fidelity: dict[str, float]) -> None:
    """No loss."""


def sometimes(config: dict[str, Any], fidelity: dict[str, float]) -> float | None:
    """A failure for one in three."""
    value = bowl(config, fidelity)
    return None if round(1e6 * value) % 3 == 0 else value


def conditional() -> Space:
    space = ConfigurationSpace()
    kernel = CategoricalHyperparameter("kernel", ["rbf", "poly", "linear"])
    degree = UniformFloatHyperparameter("degree", 1.0, 5.0)
    strength = UniformFloatHyperparameter("C", 1e-3, 1e3, log=True)
    space.add(kernel, degree, strength)
    space.add(EqualsCondition(degree, kernel, "poly"))
    return Space(space, SIZE)


def forbidden() -> Space:
    """The least value must not exceed the largest one, and one kind must not have the two middle levels."""
    space = ConfigurationSpace()
    least, most = UniformFloatHyperparameter("least", 0.0, 1.0), UniformFloatHyperparameter("most", 0.0, 1.0)
    kind = CategoricalHyperparameter("kind", ["x", "y", "z"])
    level = UniformIntegerHyperparameter("level", 1, 6)
    space.add(least, most, kind, level)
    space.add(ForbiddenGreaterThanRelation(least, most))
    middle = ForbiddenInClause(level, [3, 4])
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(kind, "y"), middle))
    return Space(space, SIZE)


def hostile() -> Space:
    texts = [text for text in HOSTILE if text.isprintable()]
    names = {f"{text}{i}": Float(0.1, 1.0) for i, text in enumerate(texts[:12])}
    return Space({**names, "choice": Categorical(texts)}, {"<b>size</b> $x$": (10, 100)})


_MIXED = {
    "rate": Float(1e-5, 1e-1, log=True),
    "depth": Integer(2, 12),
    "units": Integer(1, 4096, log=True),
    "booster": Categorical(["gbtree", "dart", None, True]),
    "level": Ordinal([1, 10, 100]),
    "fixed": 3,
}
_MAKE: dict[str, Callable[[], View]] = {
    "one fidelity": lambda: view_of(Space(SVM, SIZE), 40, bowl, fitted=True),
    "maximise": lambda: view_of(
        Space(SVM, SIZE), 40, lambda c, f: 1.0 - bowl(c, f), direction="maximize", fitted=True
    ),
    "mixed": lambda: view_of(Space(_MIXED, SIZE), 40, sometimes),
    "conditions": lambda: view_of(conditional(), 30, bowl),
    "forbidden": lambda: view_of(forbidden(), 30, bowl),
    "choices only": lambda: view_of(Space({"a": ["x", "y", "z"], "b": [True, False]}, SIZE), 20, bowl),
    "20 dimensions": lambda: view_of(Space({f"x{i}": Float(0.0, 1.0) for i in range(20)}, SIZE), 60, bowl),
    "two fidelities": lambda: view_of(
        Space(SVM, {**SIZE, "epochs": Fidelity(0.5, 8.0, log=False, integer=False)}), 40, bowl
    ),
    "reports": lambda: view_of(Space(SVM, {"epochs": Fidelity(1, 50, reports=True)}), 30, bowl),
    "no fidelity": lambda: view_of(Space(SVM), 30, bowl),
    "one hyperparameter": lambda: view_of(Space({"C": Float(1e-3, 1e3, log=True)}, SIZE), 12, bowl),
    "one trial": lambda: view_of(Space(SVM, SIZE), 1, bowl),
    "two trials": lambda: view_of(Space(SVM, SIZE), 2, bowl),
    "equal losses": lambda: view_of(Space(SVM, SIZE), 12, lambda c, f: 0.5),
    "negative losses": lambda: view_of(Space(SVM, SIZE), 30, lambda c, f: bowl(c, f) - 3.0),
    "only failures": lambda: view_of(Space(SVM, SIZE), 5, fails),
    "nothing": lambda: view_of(Space(SVM, SIZE), 0, bowl),
    "random": lambda: view_of(Space(SVM, SIZE), 30, bowl, strategy="random"),
    "on all the data": lambda: view_of(Space(SVM, SIZE), 30, bowl, strategy="ei"),
    "hostile names": lambda: view_of(hostile(), 20, sometimes),
    "3,000 trials": lambda: view_of(Space(SVM, SIZE), 3000, sometimes),
}
CASES = tuple(_MAKE)


@cache
def case(name: str) -> View:
    """The study of that name; each is made once."""
    return _MAKE[name]()
