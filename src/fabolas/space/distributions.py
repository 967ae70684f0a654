"""Translates scipy distributions to axes: uniform, loguniform (reciprocal) and randint.

Other distributions are refused: only the range and the scale of a distribution are used, and most have no finite range.
"""

from typing import Any

from fabolas.space.parameters import Axis, Constant, Float, Integer
from fabolas.space.validation import readable

SUPPORTED = "scipy.stats.uniform(low, width), loguniform(low, high) or randint(low, high)"


def is_distribution(spec: object) -> bool:
    """Return whether this is a distribution of scipy, with or without its arguments; does not import scipy."""
    return hasattr(spec, "rvs") or (hasattr(spec, "dist") and hasattr(spec, "support"))


def parse_distribution(spec: Any) -> Axis:
    """Return the axis that has the range and the scale of a scipy distribution with its arguments.

    Raises:
        TypeError: The distribution has no arguments yet, or is not one of the supported ones.
        ValueError: Its range is empty.
    """
    if not (hasattr(spec, "dist") and hasattr(spec, "support")):
        name = getattr(spec, "name", type(spec).__name__)
        raise TypeError(
            f"expected a distribution with its range, got scipy's {name} without arguments; call it: {name}(...)"
        )
    low, high = spec.support()
    kind = spec.dist.name
    _, loc, _ = spec.dist._parse_args(*spec.args, **spec.kwds)
    if kind == "randint" and low == high:
        return Constant((int(low),))
    if not low < high:
        raise ValueError(
            f"expected a range with low < high, got {distribution_text(spec)}; correct its arguments"
        )
    if kind == "uniform":
        return Float(float(low), float(high))
    if kind in ("loguniform", "reciprocal") and loc == 0:
        return Float(float(low), float(high), log=True)
    if kind == "randint":
        return Integer(int(low), int(high))
    raise TypeError(f"expected {SUPPORTED}, got {distribution_text(spec)}; use one of these")


def distribution_text(spec: Any) -> str:
    """Return the distribution as the user wrote it; its own repr is a memory address."""
    if not hasattr(spec, "dist"):
        return readable(spec)
    given = [*map(repr, spec.args), *(f"{name}={value!r}" for name, value in spec.kwds.items())]
    return f"scipy's {spec.dist.name}({', '.join(given)})"
