"""``fabolas report``: write the report of a study."""

import argparse
from pathlib import Path

from fabolas.cli.errors import as_user_error
from fabolas.display import safe_text
from fabolas.report import write_report
from fabolas.study import load


def report(options: argparse.Namespace) -> int:
    """Write one HTML file with the answer, the figures, the trials and the record of a study."""
    path = Path(
        options.output if options.output is not None else Path(options.study).with_suffix(".html").name
    )
    with as_user_error(ValueError, ImportError, OSError):
        written = write_report(load(options.study), path)
    megabytes = written.stat().st_size / 1e6
    print(f"report written to {safe_text(written)} ({megabytes:.1f} MB); open it with a browser")
    return 0
