"""The command ``fabolas``: run a problem, look at a study, print its answer, export its trials, copy its file.

``EXIT_CODES`` in ``arguments.py`` says what the exit codes mean. Each command is imported when it is used, so that
``fabolas --help`` is fast.
"""

import os
import re
import sys

from fabolas.cli.arguments import parser
from fabolas.cli.errors import INTERRUPTED, WRONG_INPUT, UserError, message


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        # A terminal with another encoding shows "?" for characters that it does not have.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        if not given:
            parser().print_help()
            return 0
        if given[:1] == ["demo"]:
            return _demo(given[1:])
        options, unknown = parser().parse_known_args(given)
        if unknown:
            raise UserError(_unknown_arguments(unknown, vars(options)))
        code: int = options.command(options)
        sys.stdout.flush()
    except UserError as error:
        message(error)
        return WRONG_INPUT
    except KeyboardInterrupt:
        message("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does. Python must not write to it again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _unknown_arguments(unknown: list[str], known: dict[str, object]) -> str:
    """Return what to say about arguments that the command does not have, and which option was probably meant."""
    from fabolas.keywords import similar_keyword

    said = f"unrecognized arguments: {' '.join(unknown)}"
    name = unknown[0].partition("=")[0].lstrip("-").replace("-", "_")
    guess = similar_keyword(name, known) if unknown[0].startswith("--") else None
    if guess is None:
        return f"{said}; `fabolas COMMAND --help` lists those of a command"
    options = re.sub(r"\w+", lambda word: _as_option(word[0], known), guess)
    return f"{said}; did you mean {options}?"


def _as_option(word: str, known: dict[str, object]) -> str:
    return f"--{word.replace('_', '-')}" if word in known else word


def _demo(arguments: list[str]) -> int:
    from fabolas.demo.__main__ import main as demo

    return demo(arguments, prog="fabolas demo")
