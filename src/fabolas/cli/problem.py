"""Loads the problem file of the user."""

import importlib
import inspect
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fabolas.api import minimize
from fabolas.cli.errors import UserError

_ARGUMENTS_OF_MINIMIZE = frozenset(inspect.signature(minimize).parameters)


@dataclass(frozen=True)
class Problem:
    """What a problem file defines.

    Attributes:
        objective: The function to minimise.
        space: The space to search.
        fidelities: The fidelities; None for none.
        settings: Further arguments for ``minimize``.
    """

    objective: Any
    space: Any
    fidelities: Any
    settings: dict[str, Any]


def load(path: Path) -> Problem:
    """Load the problem of a file. ``minimize`` checks its contents later.

    Raises:
        UserError: If the file does not exist, cannot be loaded, or does not define a problem.
    """
    module = _import(path)
    for name in ("space", "objective"):
        if not hasattr(module, name):
            raise UserError(
                f"{path} must define `space` and `objective`, but has no `{name}`; see `fabolas run --help`"
            )
    settings = _options(path, getattr(module, "options", {}))
    for name in ("strategy", "direction", "initial"):
        if hasattr(module, name):
            settings = settings | {name: getattr(module, name)}
    if hasattr(module, "data") and _takes_data(module.objective):
        settings = settings | {"data": module.data}
    return Problem(module.objective, module.space, getattr(module, "fidelities", None), settings)


def _options(path: Path, options: Any) -> dict[str, Any]:
    """Return the options of the strategy. The strategy checks later whether it has them."""
    if not isinstance(options, dict):
        raise UserError(
            f"`options` of {path} must be a dict of the strategy's options, got {options!r}; "
            "leave it out for none"
        )
    for name in options:
        if not isinstance(name, str):
            raise UserError(
                f"`options` of {path} must have strings as keys, got {name!r}; write {str(name)!r}"
            )
        if name in _ARGUMENTS_OF_MINIMIZE:
            raise UserError(
                f"`options` of {path} must be options of the strategy, got {name!r}, which is not one; "
                "`fabolas run --help` lists the options of the run"
            )
    return options


def _takes_data(objective: Any) -> bool:
    """Return whether the objective has an argument ``data``. If it has none, it does not get `data`."""
    try:
        return "data" in inspect.signature(objective).parameters
    except (TypeError, ValueError):
        return False  # minimize says if it is not a function; some functions have no signature


def _import(path: Path) -> ModuleType:
    """Import the file as a module from its own directory.

    The worker processes can then import it under the same name.
    """
    path = path.expanduser().resolve()
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise UserError(f"the problem must be a Python file, got {path}, which {what}")
    if path.suffix != ".py" or "." in path.stem:
        raise UserError(f"the problem must be a Python file such as problem.py, got {path.name}; rename it")
    sys.path.insert(0, str(path.parent))
    try:
        module = importlib.import_module(path.stem)
    except (Exception, SystemExit) as error:
        raise UserError(f"{path.name} could not be loaded:\n{_user_traceback(error, path)}") from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise UserError(
            f"{path.name} has the name of a module that Python already has, {module!r}; rename the file"
        )
    return module


def _user_traceback(error: BaseException, path: Path) -> str:
    """Return the traceback without the frames before the user's file. A syntax error names its line itself."""
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename) != path:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame)).rstrip()
