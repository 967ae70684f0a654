"""What worker processes import when they start, and what is left of them when they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabolas.execution import Job, Limits, backend_for
from tests.execution.test_contract import job, run
from tests.helpers.marks import slow
from tests.helpers.waiting import wait_until

FOREIGN = ("json", "pickle", "queue", "io", "traceback", "numpy", "secrets", "socket", "typing")


@pytest.mark.parametrize("entry", [None, "", ".", "absolute"])
def test_a_worker_never_executes_a_module_of_the_current_directory_when_it_starts(
    entry: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FOREIGN:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')")
    monkeypatch.chdir(tmp_path)
    if entry is not None:
        path = str(tmp_path) if entry == "absolute" else entry
        monkeypatch.setattr(sys, "path", [path, *sys.path])
    backend = backend_for(lambda config, size: 0.5, workers=2)
    ended = run(backend, job(0))[0]
    backend.close()
    assert ended.loss == 0.5, ended.error
    assert not (tmp_path / "executed").exists(), (tmp_path / "executed").read_text()


@pytest.mark.parametrize("entry", ["", "absolute"])
def test_the_objective_finds_the_users_modules_and_command_line(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "users_own_module.py").write_text("VALUE = 0.25")
    monkeypatch.chdir(tmp_path)
    path = [str(tmp_path) if entry == "absolute" else entry, *sys.path]
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setattr(sys, "argv", ["script.py", "--option"])

    def objective(config: dict[str, Any], size: int) -> float:
        import users_own_module  # type: ignore[import-not-found]

        assert sys.argv == ["script.py", "--option"]
        assert sys.path == config["path"]
        return float(users_own_module.VALUE)

    backend = backend_for(objective, workers=2)
    ended = run(backend, job(0, path=path))[0]
    backend.close()
    assert ended.loss == 0.25, ended.error


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


DAEMON = """
import os
child = os.fork()
if child:
    print(child)
else:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise the reader of our output waits for the daemon
    os.execvp("sleep", ["sleep", "1000"])
"""


def daemons(config: dict[str, Any], size: int) -> float:
    """Start a child in a session of its own, and a daemon by a double fork."""
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    made = subprocess.run(
        [sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    draft = Path(config["log"] + ".draft")
    draft.write_text(f"{os.getpid()} {child.pid} {int(made.stdout)}")
    draft.rename(config["log"])
    time.sleep(config["seconds"])
    return 0.5


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@linux
@pytest.mark.parametrize("how", ["close", *slow("timeout")])
def test_what_a_trial_started_in_another_session_ends_with_its_worker(how: str, tmp_path: Path) -> None:
    log = tmp_path / "pids"
    backend = backend_for(daemons, workers=1, limits=Limits(60.0))
    config = {"log": str(log), "seconds": 0.0 if how == "close" else 1000.0}
    ended = run(backend, Job(0, config, {"size": 1}, timeout=None if how == "close" else 3.0))[0]
    assert ended.status == ("complete" if how == "close" else "failed")
    pids = [int(pid) for pid in log.read_text().split()]
    backend.close()
    wait_until(lambda: not any(alive(pid) for pid in pids))


KILLED = """
import sys, time
from fabolas.execution import Job, backend_for
from tests.execution.test_isolation import daemons
backend = backend_for(daemons, workers=2)
backend.submit(Job(0, {"log": sys.argv[1], "seconds": 1000.0}, {"size": 1}))
time.sleep(1000)
"""


@linux
def test_what_a_trial_started_in_another_session_ends_when_this_process_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(log)]) as process:
        wait_until(log.exists)
        pids = [int(pid) for pid in log.read_text().split()]
        assert all(alive(pid) for pid in pids)
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in pids))
