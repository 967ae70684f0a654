"""Reads the user's problem file."""

import importlib
import inspect
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fabolas.cli.errors import UserError
from fabolas.run import minimize

_OWN = frozenset(inspect.signature(minimize).parameters)  # what the run takes itself


@dataclass(frozen=True)
class Problem:
    """What a problem file defines.

    Attributes:
        objective: The function to minimise.
        space: What to search.
        fidelities: The fidelities, None for none.
        settings: Further arguments of ``minimize`` that the file states.
    """

    objective: Any
    space: Any
    fidelities: Any
    settings: dict[str, Any]


def load(path: Path) -> Problem:
    """The problem in a file; whether it makes sense is for ``minimize`` to say.

    Raises:
        UserError: If there is no such file, it cannot be loaded, or it does not define a problem.
    """
    module = _import(path)
    for name in ("space", "objective"):
        if not hasattr(module, name):
            raise UserError(
                f"{path} must define `space` and `objective`, and has no `{name}`; see `fabolas run --help`"
            )
    settings = _options(path, getattr(module, "options", {}))
    if hasattr(module, "strategy"):
        settings = settings | {"strategy": module.strategy}
    if hasattr(module, "data") and _takes_data(module.objective):
        settings = settings | {"data": module.data}
    return Problem(module.objective, module.space, getattr(module, "fidelities", None), settings)


def _options(path: Path, options: Any) -> dict[str, Any]:
    """The options for the strategy; whether it has them is for the strategy to say."""
    if not isinstance(options, dict):
        raise UserError(
            f"`options` of {path} must be a dict of the strategy's options, got {options!r}; "
            "leave it out for none"
        )
    for name in options:
        if not isinstance(name, str):
            raise UserError(f"`options` of {path} must have names as keys, got {name!r}; write {str(name)!r}")
        if name in _OWN:
            raise UserError(
                f"`options` of {path} must be options of the strategy, got {name!r}, which is none; "
                "see `fabolas run --help` for what the run itself takes"
            )
    return options


def _takes_data(objective: Any) -> bool:
    """Whether the objective asks for the data; else a `data` in the file is the file's own affair."""
    try:
        return "data" in inspect.signature(objective).parameters
    except (TypeError, ValueError):
        return False  # not a function, which minimize will say, or one without a signature


def _import(path: Path) -> ModuleType:
    """Load the file as the module that its directory's programs would import.

    Under its own name and from its own directory it is found again by the processes that run the trials.
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
        raise UserError(f"{path.name} could not be loaded:\n{_their_traceback(error, path)}") from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise UserError(
            f"{path.name} has the name of a module that Python has already, {module!r}; rename the file"
        )
    return module


def _their_traceback(error: BaseException, path: Path) -> str:
    """The traceback from the user's file on; a syntax error there has none but names its line itself."""
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename) != path:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame)).rstrip()
