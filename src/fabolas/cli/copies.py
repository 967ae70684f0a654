"""``fabolas backup`` and ``fabolas salvage``: copy a study, or what can be read of a damaged one."""

import argparse

from fabolas.cli.errors import as_user_error
from fabolas.display import counted, safe_text
from fabolas.storage import UnwritableError
from fabolas.storage import backup as backup_file
from fabolas.storage import salvage as salvage_file


def backup(options: argparse.Namespace) -> int:
    """Copy a study to a new file, even while it runs."""
    with as_user_error(ValueError, UnwritableError, OSError):
        backup_file(options.study, options.copy)
    print(f"{safe_text(options.study)} was copied to {safe_text(options.copy)}")
    return 0


def salvage(options: argparse.Namespace) -> int:
    """Copy the trials of a damaged study that can still be read to a new file."""
    with as_user_error(ValueError, UnwritableError, OSError):
        found = salvage_file(options.study, options.copy)
    lost = "".join(
        f", {counted(n, 'row')} could {how}"
        for n, how in ((found.unreadable, "not be read"), (found.incomplete, "be read only in part"))
        if n
    )
    print(f"{counted(found.trials, 'trial')} written to {safe_text(options.copy)}{lost}")
    return 0
