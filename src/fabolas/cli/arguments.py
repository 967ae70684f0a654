"""The arguments of the command line. This module imports nothing slow, so that ``--help`` is fast."""

import argparse
from collections.abc import Callable
from typing import Any

from fabolas import __version__

_PROBLEM = """\
The problem is a Python file that defines

  space        what to search: a dict or a ConfigurationSpace
  objective    a function objective(config, size) that returns a loss
  fidelities   a dict such as {"size": (100, 50_000)}; optional

Optionally it also defines direction ("maximize"), initial (a list of configurations
to evaluate first), strategy (a name), options (a dict with options of the strategy)
and data (passed to an objective that has an argument of this name).

With --storage you can continue a run: repeat the command, with a larger budget if
the budget was used up. Press Ctrl-C once to end the run after the running trials,
twice to end it at once. Both print the answer so far.
"""

EXIT_CODES = """\
exit codes:
  0    done
  1    no answer: every trial failed, none has ended yet, or the strategy
       recommends none
  2    wrong arguments, problem file or study file; nothing was run or changed
  3    there is an answer, but the run ended before its budget was used up: too
       many trials in a row failed, or no trial can be run any more
  4    the file of the study can no longer be written (disk full, for example);
       written trials are kept, and the same command continues
  130  interrupted by Ctrl-C; a run prints its answer so far
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = _parser(
        argparse.ArgumentParser,
        prog="fabolas",
        description="Tunes hyperparameters on small subsets of the data, to find the best ones for all the data.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"fabolas {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _status(commands)
    _best(commands)
    _report(commands)
    _dashboard(commands)
    _export(commands)
    _backup(commands)
    _salvage(commands)
    commands.add_parser("demo", help="tune an SVM on 20,000 handwritten digits and watch it")
    return top


def _run(commands: Any) -> None:
    run = _parser(
        commands.add_parser,
        "run",
        help="tune the hyperparameters of a problem",
        description="Tune the hyperparameters of a problem.",
        epilog=_PROBLEM + "\n" + EXIT_CODES,
    )
    run.add_argument(
        "problem", metavar="PROBLEM.py", help="file that defines space, objective and fidelities"
    )
    run.add_argument(
        "--time-budget", metavar="TIME", type=_duration, help='wall-clock time: 90s, 30m, "5 min", 1h30m'
    )
    run.add_argument("--max-trials", metavar="N", type=_positive, help="number of trials")
    run.add_argument(
        "--storage", metavar="FILE", help="file that keeps the study; an existing one is continued"
    )
    run.add_argument(
        "--workers",
        metavar="N",
        type=_positive,
        help="trials at a time, each in its own process (default: 1)",
    )
    run.add_argument(
        "--strategy",
        metavar="NAME",
        help="fabolas, fabolas2017, mtbo, es, ei, hyperband or random (default: fabolas)",
    )
    run.add_argument(
        "--seed", metavar="N", type=_natural, help="makes the suggestions repeatable (default: random)"
    )
    _run_rules(run)
    run.add_argument(
        "--dashboard", action="store_true", help="show the run in the browser while it lasts; needs --storage"
    )
    run.add_argument("--quiet", action="store_true", help="print the answer but no progress")
    run.set_defaults(command=_imported("fabolas.cli.run", "run"))


def _run_rules(run: argparse.ArgumentParser) -> None:
    """Add the options that limit a trial or change what the budget is used for."""
    run.add_argument(
        "--trial-timeout",
        metavar="TIME",
        type=_timeout,
        help="stop a trial that takes longer: 10m, or auto",
    )
    run.add_argument("--trial-memory", metavar="SIZE", help="stop a trial that uses more memory: 500MB, 2GB")
    run.add_argument(
        "--no-verify",
        dest="verify",
        action="store_const",
        const=False,
        help="do not keep part of the budget to evaluate the answer at the target",
    )


def _status(commands: Any) -> None:
    description = "Show how far a study is, even while it runs. The file is only read."
    status = _parser(commands.add_parser, "status", help="show how far a study is", description=description)
    status.add_argument("study", metavar="FILE", help="file of the study")
    status.add_argument(
        "--watch", action="store_true", help="repeat until the run ends; waits if it has not started yet"
    )
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(command=_imported("fabolas.cli.status", "status"))


def _best(commands: Any) -> None:
    description = "Show the evaluated configuration with the lowest expected loss at the target."
    best = _parser(commands.add_parser, "best", help="show the best configuration", description=description)
    best.add_argument("study", metavar="FILE", help="file of the study")
    best.add_argument("--json", action="store_true", help="print JSON")
    best.set_defaults(command=_imported("fabolas.cli.best", "best"))


def _report(commands: Any) -> None:
    description = "Write one HTML file with the answer, the figures, all trials and the record of a study."
    report = _parser(commands.add_parser, "report", help="write a report as HTML", description=description)
    report.add_argument("study", metavar="FILE", help="file of the study")
    report.add_argument(
        "-o", "--output", metavar="REPORT.html", help="file to write (default: name of the study with .html)"
    )
    report.set_defaults(command=_imported("fabolas.cli.report", "report"))


def _dashboard(commands: Any) -> None:
    description = (
        "Show a study in the browser, even while it runs. The file is only read. With a directory, all studies in it "
        "are shown and compared."
    )
    dashboard = _parser(
        commands.add_parser, "dashboard", help="show a study in the browser, live", description=description
    )
    dashboard.add_argument("study", metavar="FILE", help="file of a study, or a directory with several")
    dashboard.add_argument(
        "--port",
        metavar="N",
        type=_port,
        help="port on 127.0.0.1 (default: 8017, or a free one if it is used)",
    )
    dashboard.add_argument("--while-stdin-is-open", action="store_true", help=argparse.SUPPRESS)
    dashboard.set_defaults(command=_imported("fabolas.cli.dashboard", "dashboard"))


def _export(commands: Any) -> None:
    description = "Write a table with one row for each trial that has ended."
    export = _parser(
        commands.add_parser, "export", help="write the trials to a table", description=description
    )
    export.add_argument("study", metavar="FILE", help="file of the study")
    export.add_argument("table", metavar="TABLE", help="file to write: .csv or .json")
    export.set_defaults(command=_imported("fabolas.cli.export", "export"))


def _backup(commands: Any) -> None:
    description = "Copy a study to a new file, even while it runs. The copy is one complete file."
    backup = _parser(commands.add_parser, "backup", help="copy a study", description=description)
    backup.add_argument("study", metavar="FILE", help="file of the study")
    backup.add_argument("copy", metavar="COPY", help="file to write; it must not exist")
    backup.set_defaults(command=_imported("fabolas.cli.copies", "backup"))


def _salvage(commands: Any) -> None:
    description = "Copy the trials of a damaged study that can still be read to a new file."
    salvage = _parser(
        commands.add_parser, "salvage", help="rescue the trials of a damaged study", description=description
    )
    salvage.add_argument("study", metavar="FILE", help="damaged file; it is only read")
    salvage.add_argument("copy", metavar="COPY", help="file to write; it must not exist")
    salvage.set_defaults(command=_imported("fabolas.cli.copies", "salvage"))


def _parser(
    make: Callable[..., argparse.ArgumentParser], *args: Any, **kwargs: Any
) -> argparse.ArgumentParser:
    return make(*args, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)


def _imported(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a command that imports its module when it is called."""

    def command(options: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(module), name)(options)
        return code

    return command


def _timeout(text: str) -> float | str:
    return text if text == "auto" else _duration(text, "the trial timeout")


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


def _port(text: str) -> int:
    port = _whole(text, 1)
    if port > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, got {text!r}")
    return port


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
    return int(text)
