"""The tools. Each file has functions `run(session)`, one per way to use the tool; `TOOLS` names them."""

from __future__ import annotations

from importlib import import_module

from experiments.peers.session import OutOfTimeError, Session

# Name in tables -> module and function. A module is imported when its tool runs: each needs another package.
TOOLS: dict[str, tuple[str, str]] = {
    "fabolas": ("ours", "fabolas"),
    "fabolas2017": ("ours", "fabolas2017"),
    "mtbo": ("ours", "mtbo"),
    "hyperband": ("ours", "hyperband"),
    "random": ("ours", "random"),
    "smac-mf": ("smac", "multi_fidelity"),
    "smac-full": ("smac", "full_data"),
    "optuna-tpe": ("optuna", "tpe"),
    "optuna-gp": ("optuna", "gp"),
    "optuna-hyperband": ("optuna", "tpe_hyperband"),
    "dehb": ("dehb", "run"),
    "bohb": ("bohb", "run"),
    "botorch-mfmes": ("botorch", "run"),
    "sklearn-halving": ("sklearn", "run"),
}


def run(tool: str, session: Session) -> None:
    """Run a tool until the session is over."""
    module, function = TOOLS[tool]
    start = getattr(import_module(f"experiments.peers.tools.{module}"), function)
    session.start()  # imports do not count
    try:
        start(session)
    except OutOfTimeError:
        return
