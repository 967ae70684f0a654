"""The words of the command line; nothing is loaded here but argparse."""

import argparse
from collections.abc import Callable
from typing import Any

from fabolas import __version__

_RUN = """\
The problem is a Python file that defines

  space        what to search: a dict or a ConfigurationSpace
  objective    a function objective(config, size) that returns a loss
  fidelities   a dict such as {"size": (100, 50_000)}; may be left out

and, if wanted, strategy (a name), options (a dict for the strategy) and data, which
is handed to an objective that has an argument of that name.

With --storage the run can be continued: the same command with a larger budget goes on
where it was. Ctrl-C ends the run with the answer so far: once when the running trials
have ended, twice at once.
"""

_CODES = """\
exit codes: 0 done; 1 no answer; 2 wrong arguments, problem or file, nothing was changed;
3 an answer, but the run gave up before its budget was used: too many trials in a row
failed, or none can be run any more; 4 the study's file could no longer be written, and
keeps what it had; 130 interrupted by Ctrl-C
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _parser(
        argparse.ArgumentParser,
        prog="fabolas",
        description="Tune on a little of the data, get the configuration that is best on all of it.",
        epilog=_CODES,
    )
    top.add_argument("--version", action="version", version=f"fabolas {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _status(commands)
    _best(commands)
    _export(commands)
    commands.add_parser("demo", help="tune an SVM on 20,000 handwritten digits, live")
    return top


def _run(commands: Any) -> None:
    run = _parser(
        commands.add_parser,
        "run",
        help="run a problem",
        description="Run a problem.",
        epilog=_RUN + "\n" + _CODES,
    )
    run.add_argument(
        "problem", metavar="PROBLEM.py", help="file that defines space, objective and fidelities"
    )
    run.add_argument("--budget", metavar="TIME", type=_duration, help="wall-clock time: 90s, 30m, 1h30m")
    run.add_argument("--max-trials", metavar="N", type=_positive, help="number of trials")
    run.add_argument("--storage", metavar="FILE", help="file to keep the study in, or to continue")
    run.add_argument("--workers", metavar="N", type=_positive, help="trials at a time, each in a process (1)")
    run.add_argument(
        "--strategy", metavar="NAME", help="fabolas, mtbo, es, ei, hyperband or random (fabolas)"
    )
    run.add_argument("--seed", metavar="N", type=_natural, help="makes the suggestions repeatable (drawn)")
    run.add_argument(
        "--timeout", metavar="TIME", type=_timeout, help="a trial that takes longer is ended: 10m, or auto"
    )
    run.add_argument("--memory", metavar="SIZE", help="a trial that needs more is ended: 500MB, 2GB")
    run.add_argument("--quiet", action="store_true", help="no progress, only the answer")
    run.set_defaults(command=_lazily("fabolas.cli.run", "run"))


def _status(commands: Any) -> None:
    text = "Show how a study is going, also while it runs. Nothing is written."
    status = _parser(commands.add_parser, "status", help="how a study is going", description=text)
    status.add_argument("study", metavar="FILE", help="file of the study")
    status.add_argument("--watch", action="store_true", help="keep showing it until the run ends")
    status.add_argument("--json", action="store_true", help="as JSON")
    status.set_defaults(command=_lazily("fabolas.cli.status", "status"))


def _best(commands: Any) -> None:
    text = "Show the evaluated configuration with the lowest expected loss at the target."
    best = _parser(commands.add_parser, "best", help="the best configuration", description=text)
    best.add_argument("study", metavar="FILE", help="file of the study")
    best.add_argument("--json", action="store_true", help="as JSON")
    best.set_defaults(command=_lazily("fabolas.cli.best", "best"))


def _export(commands: Any) -> None:
    text = "Write the trials that have ended to a table, a row each."
    export = _parser(commands.add_parser, "export", help="the trials as a table", description=text)
    export.add_argument("study", metavar="FILE", help="file of the study")
    export.add_argument("table", metavar="TABLE", help="file to write: .csv or .json")
    export.set_defaults(command=_lazily("fabolas.cli.export", "export"))


def _parser(
    make: Callable[..., argparse.ArgumentParser], *args: Any, **kwargs: Any
) -> argparse.ArgumentParser:
    return make(*args, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)


def _lazily(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    def command(options: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(module), name)(options)
        return code

    return command


def _timeout(text: str) -> float | str:
    return text if text == "auto" else _duration(text, "the timeout")


def _duration(text: str, what: str = "the time budget") -> float:
    from fabolas.budget import seconds_of

    try:
        return seconds_of(text if not text.replace(".", "", 1).isdecimal() else float(text), what)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    return _whole(text, 1)


def _natural(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
    return int(text)
