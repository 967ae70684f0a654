"""``python -m fabolas`` is the command ``fabolas``."""

import sys

from fabolas.cli import main

if __name__ == "__main__":
    sys.exit(main())
