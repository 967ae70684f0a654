"""The command ``fabolas``: run a problem, look at a study, take its answer and its trials.

Exit codes: 0 it did what was asked; 1 there is no answer (the run failed, or has none yet); 2 it could not be
done as asked (arguments, problem file, study file), and nothing was changed; 3 a run has an answer, but gave up
before its budget was used; 4 the study's file could no longer be written, and keeps what it had; 130 interrupted by
Ctrl-C.

Each command is loaded when it is used, so that ``fabolas --help`` is there at once.
"""

import os
import sys

from fabolas.cli.arguments import parser
from fabolas.cli.errors import INTERRUPTED, UserError


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says and return the exit code; errors of the user are sentences."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        # An odd terminal shows a question mark for a sign it does not have, and no traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        if given[:1] == ["demo"]:
            return _demo(given[1:])
        options = parser().parse_args(given)
        code: int = options.command(options)
        sys.stdout.flush()
    except UserError as error:
        print(f"fabolas: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fabolas: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough of it, as `head` does; Python is not to try again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _demo(arguments: list[str]) -> int:
    from fabolas.demo.__main__ import main as demo

    return demo(arguments, prog="fabolas demo")
