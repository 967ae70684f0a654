"""The command ``fabolas``: what it prints on which stream, and its exit code."""

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas.budget import Budget, RunBudget
from fabolas.cli.arguments import EXIT_CODES
from fabolas.storage import APPLICATION_ID, SCHEMA
from fabolas.storage.reader import read
from fabolas.strategies import NAMES
from tests.helpers.command import PROBLEM, Fabolas
from tests.helpers.marks import slow
from tests.helpers.waiting import wait_until


def test_run_prints_progress_on_standard_error_and_the_answer_on_standard_output(command: Fabolas) -> None:
    ended = command("run", "problem.py", "--max-trials", "12", "--seed", "0", "--storage", "run.db")
    assert ended.code == 0
    assert "12 / 12 trials (" in ended.err
    rows = ended.out.splitlines()
    best = min((t for t in read("run.db").trials if t.loss is not None), key=lambda t: t.loss or 0.0)
    assert rows[0] == f"C               {best.config['C']}"
    assert rows[3] == f"predicted loss  {best.loss:.4g} ± 0"
    assert rows[4] == "verified        yes, evaluated at the target"
    assert rows[-1] == "The study is saved in run.db. Repeat the command with a larger budget to continue it."
    assert not [row for row in rows if row != row.rstrip()]


def test_the_same_command_with_a_larger_budget_goes_on(command: Fabolas) -> None:
    run = ("run", "problem.py", "--quiet", "--storage", "run.db")
    assert command(*run, "--max-trials", "3", "--seed", "4").err == ""
    assert command(*run, "--max-trials", "5").code == 0
    assert [trial.id for trial in read("run.db").trials] == [0, 1, 2, 3, 4]
    assert command(*run, "--time-budget", "21s").code == 0  # a trial states a cost of 2 s
    assert sum(trial.status == "complete" for trial in read("run.db").trials) == 11
    assert read("run.db").seed == 4


def test_what_workers_report_is_in_the_file_at_once(command: Fabolas) -> None:
    run = ("run", "problem.py", "--quiet", "--storage", "run.db", "--seed", "1")
    assert command(*run, "--max-trials", "2").code == 0
    with closing(sqlite3.connect("run.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE seen (suggestion)")
        trigger = "AFTER INSERT ON reported BEGIN INSERT INTO seen VALUES (NEW.suggestion); END"
        connection.execute(f"CREATE TRIGGER see {trigger}")
    assert command(*run, "--max-trials", "5", "--workers", "2").code == 0
    with closing(sqlite3.connect("run.db")) as connection:
        assert sorted(connection.execute("SELECT suggestion FROM seen")) == [(2,), (3,), (4,)]


def test_options_of_the_command_line_override_those_of_the_file(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--strategy", "hyperband", "--storage", "run.db")
    assert read("run.db").strategy == "hyperband"
    Path("problem.py").write_text(PROBLEM.replace('"random"', '"hyperband"\noptions = {"eta": 4.0}'))
    command("run", "problem.py", "--max-trials", "1", "--storage", "other.db")
    assert read("other.db").options == {"eta": 4.0}


@pytest.mark.parametrize("timeout", ["30", "30s", "auto"])
def test_a_timeout_is_seconds_a_duration_or_auto(command: Fabolas, timeout: str) -> None:
    ended = command("run", "problem.py", "--max-trials", "1", "--seed", "0", "--trial-timeout", timeout)
    assert (ended.code, "predicted loss" in ended.out) == (0, True)


def test_best_status_and_export_show_what_the_file_contains(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "12", "--seed", "0", "--storage", "run.db", "--quiet")
    trials = read("run.db").trials
    failed = [t for t in trials if t.status == "failed"]
    best = min((t for t in trials if t.loss is not None), key=lambda t: t.loss or 0.0)

    answer = json.loads(command("best", "run.db", "--json").out)
    assert answer == {
        "config": best.config,
        "predicted_loss": best.loss,
        "predicted_std": 0.0,
        "verified": True,
        "preliminary": False,
        "trials": [{"id": best.id, "fidelity": {"size": 1000}, "loss": best.loss, "cost": 2.0}],
    }
    text = command("best", "run.db").out
    assert f"C               {best.config['C']}\n" in text
    assert f"#{best.id}" in text

    status = command("status", "run.db").out.splitlines()
    assert status[0] == "run.db  not running  strategy random, seed 0"
    assert status[1] == f"trials    12 ({len(failed)} failed)"
    assert re.fullmatch(r"overhead  \d+% of the time, for choosing trials", status[2])
    assert f"size      10 ·······█ 1,000  {12 - len(failed)} at the target" in status
    assert f"failed    #{failed[-1].id} MemoryError: kernel matrix too large" in status
    facts = json.loads(command("status", "run.db", "--json").out)
    assert (facts["running"], facts["trials"], facts["failed"]) == (False, 12, len(failed))
    assert facts["best"] == answer
    assert "budget    12 of 12 trials used" in status
    used = {"seconds": None, "seconds_used": facts["seconds"], "trials": 12, "trials_used": 12}
    assert facts["budget"] == used
    assert command("status", "run.db", "--watch").code == 0  # ends at once because no process runs it

    assert command("export", "run.db", "trials.csv").out == "12 trials written to trials.csv\n"
    with Path("trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["config_C"]) for row in rows] == [t.config["C"] for t in trials]
    assert [row["loss"] for row in rows] == ["" if t.loss is None else repr(t.loss) for t in trials]
    assert [row["error"] for row in rows if row["status"] == "failed"] == [
        "MemoryError: kernel matrix too large"
    ] * len(failed)
    assert {row["fidelity_size"] for row in rows} == {"1000"}
    command("export", "run.db", "trials.json")
    same = json.loads(Path("trials.json").read_text())
    assert [row["config_kernel"] for row in same] == [t.config["kernel"] for t in trials]
    assert list(same[0]) == list(rows[0])


def test_status_shows_the_time_of_the_budget_by_the_clock_while_it_runs_and_by_the_record_after(
    command: Fabolas,
) -> None:
    command(
        "run", "problem.py", "--time-budget", "21s", "--max-trials", "50", "--storage", "run.db", "--quiet"
    )
    status = command("status", "run.db")
    trials = len(read("run.db").trials)
    assert f"budget    22s of 21s, {trials} of 50 trials used" in status.out.splitlines()
    with fabolas.Study(
        {"C": fabolas.Float(1e-3, 1e3, log=True), "kernel": ["rbf", "poly"]},
        {"size": (10, 1000)},
        strategy="random",
        storage="run.db",
    ) as study:
        assert (
            "budget" not in command("status", "run.db").out
        )  # the process that has it open now has no budget
        assert json.loads(command("status", "run.db", "--json").out)["budget"] is None
        hour_ago = time.time() - 3600
        study.save_run_budget(
            RunBudget(Budget(seconds=7200.0), hour_ago, study.elapsed, study.elapsed, trials)
        )
        assert "budget    1h00m of 2h00m used" in command("status", "run.db").out.splitlines()
    assert "budget    0.0s of 2h00m used" in command("status", "run.db").out.splitlines()


def test_status_shows_everything_but_the_answer_of_an_unknown_strategy(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "2", "--storage", "run.db", "--quiet")
    with closing(sqlite3.connect("run.db", isolation_level=None)) as connection:
        connection.execute("UPDATE study SET value = '\"mine\"' WHERE key = 'strategy'")
    ended = command("status", "run.db")
    assert ended.code == 0
    assert "trials    2" in ended.out
    assert "the strategy 'mine' of" in ended.out
    facts = json.loads(command("status", "run.db", "--json").out)
    assert (facts["trials"], facts["best"]) == (2, None)
    assert facts["note"].startswith("the strategy 'mine' of")
    best = command("best", "run.db")
    assert best.code == 2
    assert best.err.startswith("fabolas: the strategy 'mine' of")


def test_a_study_without_an_answer_has_exit_code_1_and_says_why(command: Fabolas) -> None:
    Path("broken.py").write_text(PROBLEM.replace('config["C"] > 100', "True"))
    ended = command("run", "broken.py", "--max-trials", "3", "--storage", "run.db", "--quiet")
    assert ended.code == 1
    assert ended.err.startswith(
        "fabolas: no trial completed: 3 of 3 failed. The last error was: MemoryError: kernel"
    )
    assert 'raise MemoryError("kernel matrix too large")' in ended.err
    ended = command("best", "run.db")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "fabolas: run.db has no answer yet: of 3 trials none completed\n"
    assert "best      no answer yet" in command("status", "run.db").out
    ended = command("run", "broken.py", "--max-trials", "50", "--quiet")
    assert ended.code == 1
    assert ended.err.startswith("fabolas: 10 trials in a row failed (max_failures)")


@pytest.mark.parametrize("filters", slow("default", "ignore::RuntimeWarning", "error::RuntimeWarning"))
def test_a_run_that_ends_early_with_an_answer_says_so_for_every_warning_filter(
    command: Fabolas, filters: str
) -> None:
    once = PROBLEM.replace("import fabolas\n", "import fabolas, warnings\ncalls = []\n")
    once = once.replace('config["C"] > 100', "calls.append(1) or len(calls) > 1")
    Path("problem.py").write_text(once.replace("    if", '    warnings.warn("of the objective")\n    if'))
    ended = subprocess.run(
        [
            sys.executable,
            "-W",
            filters,
            "-m",
            "fabolas",
            "run",
            "problem.py",
            "--max-trials",
            "50",
            "--quiet",
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 3
    assert ended.stderr.count("fabolas: 10 trials in a row failed (max_failures)") == 1
    assert "problem.py:10: UserWarning: of the objective" in ended.stderr
    assert "RuntimeWarning" not in ended.stderr
    assert "predicted loss" in ended.stdout


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("space = {", "'{' was never closed"),
        ("import fabolas\nspace = {'x': fabolas.Float(0, 1)}", "has no `objective`"),
        ("objective = print", "has no `space`"),
        ("space = {'x': (0, 1)}\nobjective = print", "'x': expected a range or a list of choices"),
        ("space = {'x': [1, 2]}\nobjective = 3", "objective must be a function"),
        ("space = {'x': [1, 2]}\nfidelities = {'size': 3}\nobjective = print", "expected (low, high)"),
        (
            "space = {'x': [1, 2]}\nfidelities = {'size': (1, 3)}\nobjective = lambda config: 1",
            "def objective(config, size)",
        ),
        ("space = {'x': [1, 2]}\nobjective = lambda config: 1\noptions = 3", "`options` of"),
        (
            "space = {'x': [1, 2]}\nobjective = lambda config: 1\noptions = {'loud': 3}",
            "has no argument 'loud', and its strategy no option of that name",
        ),
        *(
            (f"space = {{'x': [1, 2]}}\nobjective = lambda config: 1\noptions = {options}", message)
            for options, message in {
                "{'progress': False}": "got 'progress', which is not one",
                "{'storage': 'x'}": "got 'storage', which is not one",
                "{1: 2}": "must have strings as keys, got 1; write '1'",
            }.items()
        ),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
    ],
)
def test_an_invalid_problem_file_is_one_message_and_nothing_is_written(
    command: Fabolas, source: str, message: str, tmp_path: Path
) -> None:
    Path("problem.py").write_text(source)
    code, out, err = command("run", "problem.py", "--max-trials", "3", "--storage", "run.db")
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("run.db").exists()


def test_an_error_inside_the_problem_file_shows_only_the_frames_of_the_user(command: Fabolas) -> None:
    Path("helper.py").write_text("def load():\n    return open('no such file')\n")
    Path("problem.py").write_text("import helper\ndata = helper.load()\n")
    code, _, err = command("run", "problem.py", "--max-trials", "3")
    assert code == 2
    assert err.startswith("fabolas: problem.py could not be loaded:\nTraceback")
    assert "line 2, in <module>\n    data = helper.load()" in err
    assert "FileNotFoundError" in err
    assert "importlib" not in err
    assert "fabolas/cli" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fly", "invalid choice: 'fly'"),
        ("run", "PROBLEM.py"),
        ("run problem.py", "give --time-budget 30m or --max-trials 100"),
        ("run problem.py --time-budget soon", "must be a duration, got 'soon'"),
        ("run problem.py --time-budget 0s", "more than 0 seconds"),
        (
            "run problem.py --max-trials 1 --trial-timeout soon",
            "the trial timeout must be a duration, got 'soon'",
        ),
        ("run problem.py --max-trials 1 --trial-timeout 0", "the trial timeout must be more than 0 seconds"),
        ("run problem.py --max-trials 0", "expected a whole number >= 1, got '0'"),
        ("run problem.py --max-trials 3 --seed -1", "--seed"),
        ("run problem.py --max-trials 3 --strategy magic", "there is no strategy 'magic'"),
        ("run none.py --max-trials 3", "does not exist"),
        ("run . --max-trials 3", "is a directory"),
        ("run notes.txt --max-trials 3", "rename it"),
        ("run json.py --max-trials 3", "has the name of a module that Python already has"),
        ("run problem.py --max-trials 3 --storage notes.txt", "not a study of fabolas and was left as it is"),
        ("run problem.py --max-trials 3 --storage none/run.db", "a directory that does not exist"),
        ("run problem.py --max-trials 3 --storage newer.db", "a newer version of fabolas (schema "),
        ("status none.db", "does not exist"),
        ("status notes.txt", "not a study"),
        ("status newer.db", "a newer version of fabolas (schema "),
        ("best .", "is a directory"),
        ("export notes.txt trials.csv", "not a study"),
        ("export notes.txt trials.xls", "must be a .csv or a .json file"),
    ],
)
def test_an_error_of_the_user_is_one_message_with_exit_code_2(
    command: Fabolas, arguments: str, message: str
) -> None:
    Path("notes.txt").write_text("the only copy of my thesis" * 10)
    Path("json.py").write_text("")
    with closing(sqlite3.connect("newer.db")) as connection:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA + 1}"
        )
        connection.execute("CREATE TABLE unheard_of (a)")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, out, err = command(*arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("fabolas")]) == 1
    assert {p: p.read_bytes() for p in Path().iterdir() if p.name != "__pycache__"} == before


def test_a_table_that_cannot_be_written_is_one_message(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.db")
    ended = command("export", "run.db", "none/trials.csv")
    assert (ended.code, ended.err) == (
        2,
        "fabolas: none/trials.csv cannot be written: No such file or directory; choose another file\n",
    )


def test_a_table_never_replaces_a_study_or_another_database(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.json")
    command("run", "problem.py", "--max-trials", "2", "--storage", "other.csv")
    Path("link.csv").symlink_to("run.json")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    for table in ("run.json", "./run.json", "link.csv", "other.csv"):
        ended = command("export", "run.json", table)
        assert (ended.code, ended.out) == (2, "")
        assert "which is one and was left as it is; choose another file" in ended.err
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_table_replaces_an_older_table_and_leaves_no_other_file(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.db")
    Path("trials.csv").write_text("old")
    before = set(Path().iterdir())
    assert command("export", "run.db", "trials.csv").code == 0
    assert Path("trials.csv").read_text().startswith("id,status,loss,")
    assert set(Path().iterdir()) == before


def test_nan_and_infinity_are_null_in_a_table(command: Fabolas) -> None:
    infos = PROBLEM.replace('{"rows": size}', '{"auc": float("nan"), "path": [1.0, float("inf")]}')
    Path("problem.py").write_text(infos.replace("> 100", "> 1e9"))
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.db")
    command("export", "run.db", "trials.json")
    command("export", "run.db", "trials.csv")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    (row,) = json.loads(Path("trials.json").read_text(), parse_constant=refuse)
    assert (row["info_auc"], row["info_path"]) == (None, [1.0, None])
    with Path("trials.csv").open(newline="") as file:
        (same,) = csv.DictReader(file)
    assert same["info_auc"] == ""
    assert json.loads(same["info_path"], parse_constant=refuse) == row["info_path"]


@pytest.mark.parametrize(
    "arguments", ["", "--help", "run --help", "status --help", "demo --help", "--version"]
)
def test_help_and_version_are_printed(command: Fabolas, arguments: str) -> None:
    ended = command(*arguments.split())
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(
        f"fabolas {fabolas.__version__}" if "version" in arguments else "usage: fabolas"
    )


def test_an_error_of_ours_is_not_reported_as_a_missing_answer(
    command: Fabolas, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, storage: Any, **named: Any) -> None:
        storage.opened = True  # so it is not an error of the user's input
        raise RuntimeError("a mistake in fabolas")

    monkeypatch.setattr(import_module("fabolas.cli.run"), "minimize", broken)
    with pytest.raises(RuntimeError, match="a mistake in fabolas"):
        command("run", "problem.py", "--max-trials", "1")


def test_help_and_documentation_say_the_same_about_exit_codes() -> None:
    page = (Path(fabolas.__file__).parents[2] / "docs" / "howto" / "command-line.md").read_text("utf-8")
    documented = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    shown = " ".join(EXIT_CODES.removeprefix("exit codes:").split())
    assert [code for code, _ in documented] == ["0", "1", "2", "3", "4", "130"]
    assert shown == " ".join(f"{code} {meaning}" for code, meaning in documented)


def test_help_names_every_strategy(command: Fabolas) -> None:
    assert set(NAMES) <= set(re.findall(r"\w+", command("run", "--help").out))


def test_help_loads_no_library() -> None:
    code = "import sys; from fabolas.cli.arguments import parser; parser().format_help(); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"numpy", "rich", "scipy", "sqlite3"} & set(ended.stdout.split())


WAITING = PROBLEM.replace(
    "    return",
    """    import pathlib, time
    for _ in range(6000):  # a minute at most
        if not pathlib.Path("wait").exists() or size < 1000 or len(list(pathlib.Path().glob("*.done"))) < 2:
            break
        time.sleep(0.01)
    pathlib.Path(f"{config['C']}.done").touch()
    return""",
)


def test_a_running_study_can_be_read_but_not_run_twice_and_ctrl_c_prints_the_answer(
    command: Fabolas, tmp_path: Path
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING.replace("> 100", "> 1e9"))
    (tmp_path / "wait").touch()
    arguments = ["run", "waiting.py", "--max-trials", "9", "--storage", "run.db", "--seed", "1"]
    # A process in the background of a shell ignores Ctrl-C, and so would its children.
    default_handler = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            default_handler + "from fabolas.cli import main; sys.exit(main())",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        wait_until(lambda: Path("run.db").exists() and 2 in read("run.db").started)
        facts = json.loads(command("status", "run.db", "--json").out)
        assert (facts["running"], facts["process"], facts["trials"], facts["abandoned"]) == (
            True,
            process.pid,
            2,
            0,
        )
        assert [trial["id"] for trial in facts["running_trials"]] == [2]
        status = command("status", "run.db").out
        assert f"run.db  running in process {process.pid}  strategy random, seed 1" in status
        assert "\nrunning   #2 size 1,000, for " in status
        assert "\nbudget    2 of 9 trials used\n" in status
        assert command("best", "run.db").code == 0
        second = command(*arguments)
        assert (second.code, second.out) == (2, "")
        assert second.err.startswith("fabolas: ")
        assert f"in use by another process (pid {process.pid})" in second.err
        process.send_signal(signal.SIGINT)
        Path("wait").unlink()  # Ctrl-C waits for the running trial
        out, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert out.startswith("C ")
    assert "Traceback" not in err
    assert "\nCtrl-C: waiting for the running trials" in f"\n{err}"
    assert [trial.status for trial in read("run.db").trials] == ["complete"] * 3
    assert read("run.db").open_suggestions == ()


def test_status_names_the_trials_that_a_killed_run_left_until_the_next_run(command: Fabolas) -> None:
    Path("killed.py").write_text(
        PROBLEM.replace("    if", "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n    if")
    )
    ended = subprocess.run(
        [sys.executable, "-m", "fabolas", "run", "killed.py", "--max-trials", "2", "--storage", "run.db"],
        check=False,
        capture_output=True,
    )
    assert ended.returncode == -signal.SIGKILL
    for _ in range(2):
        assert "stopped   #0 was running when the run ended" in command("status", "run.db").out
    assert command("run", "problem.py", "--max-trials", "2", "--storage", "run.db").code in (0, 1)
    assert [trial.status == "abandoned" for trial in read("run.db").trials] == [True, False]


def test_a_full_disk_ends_a_run_with_a_message_and_the_next_run_continues(command: Fabolas) -> None:
    # A limit for the connections of this process: the file cannot grow further after it was opened.
    full = """import sqlite3
usual = sqlite3.connect
def connect(*args, **kwargs):
    connection = usual(*args, **kwargs)
    connection.execute("PRAGMA max_page_count = 14")
    return connection
sqlite3.connect = connect
"""
    Path("full.py").write_text(full + PROBLEM)
    run = ("--storage", "run.db", "--quiet", "--max-trials")
    ended = subprocess.run(
        [sys.executable, "-m", "fabolas", "run", "full.py", *run, "500"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "`fabolas best run.db` shows the answer of the trials that were written" in ended.stderr
    assert command("best", "run.db").code == 0
    assert ended.stderr.startswith(f"fabolas: {Path('run.db').resolve()} cannot be written (")
    assert "full); it keeps everything that was written before. Check that the disk has space" in ended.stderr
    assert "Traceback" not in ended.stderr
    trials = len(read("run.db").trials)
    assert trials > 0
    assert command("run", "problem.py", *run, str(trials + 2)).code == 0
    assert len(read("run.db").trials) == trials + 2


def test_a_closed_pipe_is_not_an_error(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.db")
    receiving, sending = os.pipe()
    os.close(receiving)
    ended = subprocess.run(
        [sys.executable, "-m", "fabolas", "status", "run.db", "--json"],
        stdout=sending,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(sending)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_after_ctrl_c_the_same_command_continues_without_a_larger_budget(command: Fabolas) -> None:
    interrupted = PROBLEM.replace(
        "    if", "    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n    if"
    )
    Path("problem.py").write_text(interrupted.replace("> 100", "> 1e9"))
    ended = command("run", "problem.py", "--max-trials", "9", "--storage", "run.db", "--quiet")
    assert ended.code == 130
    assert ended.out.endswith("\nThe study is saved in run.db. Repeat the command to continue it.\n")


def test_a_budget_may_have_a_space_and_a_word(command: Fabolas) -> None:
    command(
        "run", "problem.py", "--time-budget", "5 min", "--max-trials", "1", "--storage", "run.db", "--quiet"
    )
    assert read("run.db").run_budget == replace(read("run.db").run_budget, budget=Budget(300.0, 1))  # type: ignore[type-var]


@pytest.mark.parametrize("file_exists", slow(False, True))
def test_watching_waits_until_the_run_has_started(command: Fabolas, file_exists: bool) -> None:
    space = {"C": fabolas.Float(1e-3, 1e3, log=True), "kernel": ["rbf", "poly"]}
    if file_exists:
        fabolas.Study(space, {"size": (10, 1000)}, strategy="random", storage="run.db", seed=0).close()
    watching = subprocess.Popen(
        [sys.executable, "-m", "fabolas", "status", "run.db", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with watching:
        assert watching.stderr is not None
        assert watching.stderr.readline().startswith(
            "fabolas: waiting for a run to start with --storage run.db"
        )
        run = ("run", "problem.py", "--max-trials", "3", "--storage", "run.db", "--quiet", "--seed", "0")
        assert command(*run).code == 0
        out, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (0, "")
    assert "trials    3" in out


def test_watching_a_file_in_a_directory_that_does_not_exist_is_an_error(command: Fabolas) -> None:
    ended = command("status", "nowhere/run.db", "--watch")
    assert (ended.code, ended.err.count("whose directory does not exist")) == (2, 1)


def test_after_a_change_of_the_clock_no_time_is_negative(
    command: Fabolas, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("run", "problem.py", "--max-trials", "2", "--storage", "run.db", "--quiet")
    monkeypatch.setattr("fabolas.cli.status.time.time", lambda: 1000.0)
    status = command("status", "run.db").out
    assert not re.search(r"-[\d.]+(s|m|h)", status)
    assert "recorded; the clock was set back since the start" in status


def test_a_table_does_not_replace_what_is_not_a_file(command: Fabolas) -> None:
    command("run", "problem.py", "--max-trials", "1", "--storage", "run.db", "--quiet")
    os.mkfifo("trials.csv")
    ended = command("export", "run.db", "trials.csv")
    assert (ended.code, "which is something else; choose another file" in ended.err) == (2, True)
    assert Path("trials.csv").is_fifo()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("--budget", "--time-budget"),
        ("--n-jobs", "--workers"),
        ("--timeout", "--time-budget, or --trial-timeout for one trial"),
    ],
)
def test_a_wrong_option_gets_a_human_answer(command: Fabolas, wrong: str, right: str) -> None:
    ended = command("run", "problem.py", f"{wrong}=5")
    assert (ended.code, ended.err) == (
        2,
        f"fabolas: unrecognized arguments: {wrong}=5; did you mean {right}?\n",
    )


def test_an_option_that_nobody_knows_is_one_line(command: Fabolas) -> None:
    ended = command("run", "problem.py", "--xyzzy")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "unrecognized arguments: --xyzzy" in ended.err
