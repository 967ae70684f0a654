"""Ray: ``RayExecutor`` runs the trials of ``fabolas.minimize`` on a cluster, ``FabolasSearch`` searches for Ray Tune.

Both are loaded when first used: Tune needs more packages than Ray alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabolas.execution.ray_executor import RayExecutor
    from fabolas.ray.search import FabolasSearch

__all__ = ["FabolasSearch", "RayExecutor"]

_HOME = {"FabolasSearch": "fabolas.ray.search", "RayExecutor": "fabolas.execution.ray_executor"}


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in."""
    if name not in _HOME:
        raise AttributeError(
            f"module 'fabolas.ray' has no attribute {name!r}; its names are {', '.join(_HOME)}"
        )
    return getattr(import_module(_HOME[name]), name)
