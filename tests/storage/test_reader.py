import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical as Candidate
from ConfigSpace import ConfigurationSpace, EqualsCondition
from ConfigSpace import Float as Real

from fabolas import Float, Integer, Ordinal, Space, Study
from fabolas.budget import Budget, Timer
from fabolas.execution import Ended
from fabolas.policy import RunState
from fabolas.storage import APPLICATION_ID, SCHEMA
from fabolas.storage.lock import lock_owner
from fabolas.storage.reader import read
from fabolas.storage.schema import replace_state
from fabolas.strategies import NAMES
from fabolas.study import LoadedStudy, load

PLAIN = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "depth": Integer(1, 9),
        "kernel": ["rbf", 3, None],
        "rank": Ordinal(["low", "mid", "high"]),
        "fixed": 3,
    },
    {"size": (10, 1000), "share": (0.125, 1.0)},
)


def conditional() -> Space:
    space = ConfigurationSpace()
    kernel, degree = Candidate("kernel", ["rbf", "poly"]), Real("degree", (1.0, 4.0))
    space.add(kernel, degree, Real("C", (1e-2, 1e4), log=True))
    space.add(EqualsCondition(degree, kernel, "poly"))
    return Space(space, {"size": (10, 1000)})


def search(study: Study, trials: int) -> None:
    for _ in range(trials):
        s = study.ask()
        if s.id == 3:
            study.fail(s, "out of memory", cost=0.5)
        else:
            study.tell(
                s, abs(np.log10(s.config["C"])) + 1 / s.fidelity["size"], cost=0.1 * s.fidelity["size"]
            )


def contents(directory: Path) -> dict[str, bytes]:
    """Every file in the directory, except the index that SQLite's processes share."""
    return {p.name: p.read_bytes() for p in directory.iterdir() if not p.name.endswith("-shm")}


FAST = ("random", "fabolas")


@pytest.mark.parametrize(
    ("strategy", "space"),
    [
        *(
            pytest.param(name, PLAIN, id=name, marks=() if name in FAST else pytest.mark.slow)
            for name in NAMES
        ),
        pytest.param("fabolas", conditional(), id="conditional", marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("little_effort")
def test_the_answer_from_the_file_equals_that_of_the_study_and_nothing_is_written(
    strategy: str, space: Space, tmp_path: Path
) -> None:
    without_effort: dict[str, Any] = {"random": {}, "hyperband": {}, "fabolas2017": {"n_initial": 4}}
    options: dict[str, Any] = without_effort.get(strategy, {"effort": 0.0, "n_initial": 4})
    path = tmp_path / "study.db"
    with Study(space, strategy=strategy, storage=path, seed=1, overhead=0.1, **options) as study:
        search(study, 9)
        waiting = study.ask()
        expected = study.incumbent()
        before = contents(tmp_path)
        file = read(path)
        assert LoadedStudy(file).incumbent() == expected
        assert contents(tmp_path) == before
        assert file.trials == study.trials
        assert file.open_suggestions == (waiting,)
        assert file.lock_owner == os.getpid()
        assert (file.strategy, file.options, file.seed) == (strategy, options, 1)
        study.tell(waiting, 5.0, cost=1.0)  # the study was not disturbed
    before = contents(tmp_path)
    assert list(before) == ["study.db"]
    file = read(path)
    assert (file.lock_owner, file.open_suggestions, len(file.trials)) == (None, (), 10)
    assert (LoadedStudy(file).incumbent() is None) == (expected is None)
    assert contents(tmp_path) == before


def test_tuples_of_a_configuration_come_back_as_tuples_and_points_are_exact(tmp_path: Path) -> None:
    space = {"C": Float(1e-3, 1e3, log=True), "layers": [(64,), (64, 64), None]}
    with Study(space, {"size": (1, 9)}, strategy="random", storage=tmp_path / "study.db", seed=0) as study:
        search(study, 8)
    for trial, own in zip(read(tmp_path / "study.db").trials, study.trials, strict=True):
        assert trial.config == own.config
        assert trial.suggestion.point.tobytes() == own.suggestion.point.tobytes()


def test_a_space_from_its_description_has_the_same_cube() -> None:
    again = Space.from_description(PLAIN.describe())
    assert (again.names, again.n_choices, again.fidelities) == (
        PLAIN.names,
        PLAIN.n_choices,
        PLAIN.fidelities,
    )
    points = np.random.default_rng(0).random((50, PLAIN.dim + PLAIN.n_fidelities))
    np.testing.assert_array_equal(again.snap(points), PLAIN.snap(points))
    np.testing.assert_array_equal(again.log_fractions(points), PLAIN.log_fractions(points))


def test_a_space_with_a_condition_comes_back_from_the_file(tmp_path: Path) -> None:
    space = conditional()
    with Study(space, strategy="random", storage=tmp_path / "study.db", seed=0) as study:
        search(study, 8)
    file = read(tmp_path / "study.db")
    assert file.space == space
    assert file.trials == study.trials
    assert {"degree" in trial.config for trial in file.trials} == {True, False}


def deep(levels: int) -> str:
    """The text of a rule with so many levels."""
    return '{"kind": "and", "text": "", "parts": [' * levels + "0" + "]}" * levels


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("\"degree if kernel == 'poly'\"", "expected a rule of the kind"),
        ('{"kind": "custom", "text": "", "names": ["__import__"]}', "hyperparameters of the space"),
        (deep(150), "expected a rule with the text"),
        (deep(100_000), "RecursionError|levels"),
    ],
    ids=["text", "name", "deep", "too deep for JSON"],
)
def test_a_file_with_a_hostile_rule_is_refused_with_a_reason(
    rule: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.db"
    with Study(conditional(), strategy="random", storage=path, seed=0) as study:
        search(study, 2)
    space = {**study.space.describe(), "conditions": {"degree": "HERE"}}
    text = json.dumps(space).replace('"HERE"', rule)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE study SET value = ? WHERE key = 'space'", (text,))
    with pytest.raises(ValueError, match=rf"is a study but is damaged \(.*({sentence})"):
        load(path)


KILLED = """
import os, signal, sys, fabolas
study = fabolas.Study({"C": fabolas.Float(1e-3, 1e3, log=True)}, strategy="random", storage=sys.argv[1], seed=0)
for trial in range(3):
    study.tell(study.ask(), 0.5, cost=1.0)
study.ask()
print("ready", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_reader_tells_a_running_study_of_another_process_from_a_killed_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.db"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before = contents(tmp_path)
        file = read(path)
        assert file.lock_owner == lock_owner(path) == process.pid
        assert (len(file.trials), [s.id for s in file.open_suggestions]) == (3, [3])
        assert contents(tmp_path) == before
    before = contents(tmp_path)
    assert path.with_name("study.db-wal").stat().st_size > 0  # what it did is still in the log
    file = read(path)
    assert file.lock_owner is None
    assert (len(file.trials), [s.id for s in file.open_suggestions]) == (
        3,
        [3],
    )  # left, not marked as lost by looking
    assert contents(tmp_path) == before


def test_asking_for_the_lock_owner_does_not_release_our_own_lock(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Study(PLAIN, strategy="random", storage=path):
        assert lock_owner(path) == os.getpid()
        read(path)
        code = (
            "from fabolas.storage.lock import lock_owner; from pathlib import Path; "
            f"print(lock_owner(Path({str(path)!r})))"
        )
        answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert answer.stdout.strip() == str(os.getpid())
    assert lock_owner(path) is None


def test_the_answer_of_a_strategy_of_the_users_own_is_refused_with_a_reason(tmp_path: Path) -> None:
    with Study(PLAIN, strategy="random", storage=tmp_path / "study.db") as study:
        search(study, 2)
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as connection:
        connection.execute("UPDATE study SET value = '\"mine\"' WHERE key = 'strategy'")
    with pytest.raises(ValueError, match=r"'mine' .* is not one of fabolas, .*open the study with it"):
        load(tmp_path / "study.db").incumbent()


def test_the_state_of_another_version_is_refused_with_a_reason(tmp_path: Path) -> None:
    with Study(PLAIN, strategy="random", storage=tmp_path / "study.db") as study:
        search(study, 2)
    file = replace(read(tmp_path / "study.db"), state={"unheard_of": np.zeros(3)})
    with pytest.raises(ValueError, match="saved by another version of fabolas"):
        LoadedStudy(file).incumbent()


@pytest.mark.parametrize(
    "value", [{"record": "fabolas.unheard_of:Record", "fields": {}}, 1.0], ids=["record", "number"]
)
def test_an_option_of_another_version_is_refused_with_a_reason(value: object, tmp_path: Path) -> None:
    with Study(PLAIN, strategy="random", storage=tmp_path / "study.db") as study:
        search(study, 2)
    config = {"record": "fabolas.strategies.acquire:AcquisitionConfig", "fields": {"unheard_of": value}}
    file = replace(read(tmp_path / "study.db"), strategy="fabolas", options={"acquisition": config})
    with pytest.raises(
        ValueError, match=r"saved by another version of fabolas.*unheard_of.*use that version"
    ):
        LoadedStudy(file).incumbent()


def test_a_file_that_is_not_a_study_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the only copy of my thesis" * 10)
    with closing(sqlite3.connect(tmp_path / "newer")) as connection:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA + 1}"
        )
        connection.execute("CREATE TABLE unheard_of (a)")
    with Study(PLAIN, strategy="random", storage=tmp_path / "damaged"):
        pass
    damaged = (tmp_path / "damaged").read_bytes()
    (tmp_path / "damaged").write_bytes(damaged[:100] + b"\xff" * 8000)
    cases = {
        "none": "does not exist",
        ".": "is a directory",
        "text": "not a study",
        "newer": "a newer version of fabolas",
        "damaged": "is a study but is damaged",
    }
    for name, message in cases.items():
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name)


def test_a_study_whose_strategy_cannot_use_the_state_is_refused_and_not_left_open(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    options: dict[str, Any] = {"strategy": "random", "storage": path, "seed": 1}
    with Study(PLAIN, **options) as study:
        search(study, 4)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        replace_state(connection, {"unheard_of": np.zeros(3)})
    with pytest.raises(ValueError, match=r"a state that the strategy 'random' cannot continue from"):
        Study(PLAIN, **options)
    assert lock_owner(path) is None


def test_a_file_counts_the_time_of_a_run_with_several_workers_as_the_run_does(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Study({"x": Float(0.0, 1.0)}, strategy="random", storage=path, seed=0) as study:
        run = RunState(study, Budget(1000.0), Timer(lambda: 0.0), workers=4, asynchronous=True)
        for _ in range(2):  # at the same time; the objective states costs that take no time
            suggestion = study.ask(queued=True)
            study.tell_outcome(Ended(suggestion.id, "complete", loss=0.5, cost=200.0), run.trial_elapsed)
        used = read(path).usage(now=0.0)
        assert used is not None
        assert used.seconds == run.used.seconds == 100.0


def test_a_file_counts_the_overhead_of_a_running_trial_as_the_run_does(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Study({"x": Float(0.0, 1.0)}, strategy="random", storage=path, seed=0, overhead=3.0) as study:
        run = RunState(study, Budget(1000.0), Timer(lambda: 0.0))
        study.tell(study.ask(), 0.5, cost=200.0)
        study.ask()
        used = read(path).usage(now=0.0)
        assert used is not None
        assert used.seconds == run.used.seconds == 206.0
