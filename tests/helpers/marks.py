"""Parameters that only the whole suite runs."""

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """The values, each marked as slow: `parametrize("seed", [0, *slow(1, 2)])` has one seed in the fast suite."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
