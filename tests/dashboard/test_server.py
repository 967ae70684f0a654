"""The server lets a run on the same machine go first."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

AUTOGROUP = Path("/proc/self/autogroup")
LOWER = (
    "import os\n"
    "from pathlib import Path\n"
    "from fabolas.dashboard.server import lower_priority\n"
    "lower_priority()\n"
    "print(os.nice(0))\n"
    "print(Path('/proc/self/autogroup').read_text() if Path('/proc/self/autogroup').exists() else '')\n"
)


@cache
def lowered(*, own_session: bool) -> tuple[int, str]:
    """Niceness of a process that has lowered its priority, and the priority of its session."""
    ended = subprocess.run(
        [sys.executable, "-c", LOWER],
        start_new_session=own_session,
        capture_output=True,
        text=True,
        check=True,
    )
    niceness, session = ended.stdout.split("\n", 1)
    return int(niceness), session.strip()


@pytest.mark.skipif(not hasattr(os, "nice"), reason="this system has no niceness")
def test_it_has_a_low_priority() -> None:
    assert lowered(own_session=False)[0] == min(os.nice(0) + 15, 19)


@pytest.mark.slow
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this system has no autogroups")
def test_the_priority_of_its_session_is_low_if_it_is_its_own() -> None:
    assert lowered(own_session=True)[1].endswith("nice 5")
    before = AUTOGROUP.read_text().strip()
    assert lowered(own_session=False)[1] == before  # other processes of the session keep their priority
