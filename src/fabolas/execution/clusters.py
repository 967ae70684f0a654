"""Make an Executor of what users have: an Executor, a Dask client, or the address of a Ray cluster."""

from collections.abc import Callable
from concurrent.futures import Executor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

_EXPECTED = (
    "executor must be a concurrent.futures.Executor, a Dask Client, or the address of a Ray cluster such as 'auto' or "
    "'ray://head:10001'"
)


def executor_for(given: "Executor | Client | str") -> tuple[Executor, Callable[[], None]]:
    """The Executor, and what to call when it is no longer needed. What the user made is not shut down.

    Raises:
        TypeError: If it is none of these.
        ValueError: If the text is not an address of Ray.
        ImportError: If it needs a package that is not installed.
        ConnectionError: If Ray is not running there.
    """
    if isinstance(given, str):
        return _ray(given)
    client: Any = given
    if callable(getattr(client, "get_executor", None)) and hasattr(client, "nthreads"):
        # pure=False: the same trial may be run twice, so its result must not be cached.
        return client.get_executor(pure=False), _nothing
    if not callable(getattr(client, "submit", None)):
        raise TypeError(f"{_EXPECTED}; got {given!r}")
    return client, _nothing


def _ray(address: str) -> tuple[Executor, Callable[[], None]]:
    """Connect to Ray, unless this program is connected, and disconnect at the end."""
    if address not in ("auto", "local") and ":" not in address:
        raise ValueError(f"{_EXPECTED}; got {address!r}")
    if find_spec("ray") is None:
        raise ImportError(
            f"executor={address!r} is the address of a Ray cluster, and Ray is not installed; "
            "install it with: pip install 'fabolas[ray]'"
        )
    import ray

    from fabolas.execution.ray_executor import RayExecutor

    connected = ray.is_initialized()
    if not connected:
        ray.init(address, log_to_driver=False)
    executor = RayExecutor()

    def release() -> None:
        executor.shutdown(wait=False, cancel_futures=True)
        if not connected:
            ray.shutdown()

    return executor, release


def _nothing() -> None:
    pass
