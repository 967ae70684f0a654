"""A file that somebody deletes, renames, replaces or overwrites while a study uses it: nothing is lost."""

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas.execution import Ended
from fabolas.storage import UnwritableError
from fabolas.storage.lock import lock_owner
from fabolas.storage.reader import read
from tests.storage.conftest import SPACE, open_study, read_only, run_trials


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace_by_another_study(path: Path) -> None:
    with open_study(path.with_name("other.db")) as study:
        run_trials(study, 1)
    path.with_name("other.db").rename(path)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def cut(path: Path) -> None:
    os.truncate(path, 4096)


def overwrite(path: Path) -> None:
    path.write_text("the only copy of my thesis" * 1000)


def overwrite_by_another_study(path: Path) -> None:
    with open_study(path.with_name("other.db")) as study:
        run_trials(study, 1)
    shutil.copyfile(path.with_name("other.db"), path)


def overwrite_by_an_older_copy(path: Path) -> None:
    shutil.copyfile(path.with_name("older.db"), path)


CHANGES = {
    delete: "was deleted or renamed",
    rename: "was deleted or renamed",
    replace_by_another_study: "was replaced by another file",
    truncate: "was truncated or overwritten",
    cut: "was truncated or overwritten",
    overwrite: "was truncated or overwritten",
    overwrite_by_another_study: "was truncated or overwritten",
    overwrite_by_an_older_copy: "was truncated or overwritten",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_file_is_noticed_at_the_next_step_and_everything_is_in_a_new_file(
    change: Any, tmp_path: Path
) -> None:
    path = tmp_path / "study.db"
    with open_study(path) as study:
        run_trials(study, 3)
        fabolas.storage.backup(path, tmp_path / "older.db")
        run_trials(study, 7)
        pending = study.ask()
        change(path)
        content = path.read_bytes() if path.exists() else None
        with pytest.warns(
            RuntimeWarning, match=rf"study.db {CHANGES[change]} .* 10 trials are in .*study-rescued.db"
        ):
            study.tell(pending, 0.5, cost=1.0)
        assert lock_owner(path) is None
        assert lock_owner(tmp_path / "study-rescued.db") == os.getpid()
        run_trials(study, 2)
        losses = [trial.loss for trial in study.trials]
    assert (path.read_bytes() if path.exists() else None) == content  # it belongs to somebody else now
    assert not path.with_name("study.db-wal").exists()
    rescued = read(tmp_path / "study-rescued.db")
    assert [trial.loss for trial in rescued.trials] == losses
    assert len(losses) == 13
    with open_study(tmp_path / "study-rescued.db") as study:
        assert [trial.info for trial in study.trials[:10]] == [{"id": i} for i in range(10)]
        assert study.ask().id == 13
    if change is rename:
        assert len(read(tmp_path / "elsewhere.db").trials) == 10


def test_a_run_whose_file_is_deleted_returns_its_result_and_continues_from_the_new_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.db"

    def objective(config: dict[str, Any], size: int) -> float:
        if path.exists():
            path.unlink()
        return float(config["x"])

    run: dict[str, Any] = {"strategy": "random", "progress": False}
    with pytest.warns(RuntimeWarning, match=r"run-rescued\.db") as said:
        result = fabolas.minimize(objective, SPACE, max_trials=5, storage=path, **run)
    assert len(result.trials) == 5
    assert said[0].filename == __file__
    again = fabolas.minimize(objective, SPACE, max_trials=6, storage=tmp_path / "run-rescued.db", **run)
    assert again.trials[:5] == result.trials


def test_an_outcome_that_a_worker_reports_notices_it_too(tmp_path: Path) -> None:
    with open_study(tmp_path / "study.db") as study:
        study.ask()
        (tmp_path / "study.db").unlink()
        thread = threading.Thread(target=study.save_event, args=(Ended(0, "complete", 0.5, 1.0),))
        thread.start()
        with pytest.warns(RuntimeWarning, match=r"study-rescued\.db"):
            thread.join()
        assert [trial.loss for trial in read(tmp_path / "study-rescued.db").trials] == [0.5]


def test_a_second_rescue_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "study-rescued.db").write_text("somebody else's")
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 1)
        (tmp_path / "study.db").unlink()
        with pytest.warns(RuntimeWarning, match=r"study-rescued-2\.db"):
            run_trials(study, 1)
    assert (tmp_path / "study-rescued.db").read_text() == "somebody else's"


def test_a_directory_that_is_gone_is_replaced_by_the_one_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with open_study(tmp_path / "runs" / "study.db") as study:
        run_trials(study, 2)
        shutil.rmtree(tmp_path / "runs")
        with pytest.warns(RuntimeWarning, match=r"temporary/study-rescued\.db"):
            run_trials(study, 1)
    assert len(read(tmp_path / "temporary" / "study-rescued.db").trials) == 3


def test_without_any_place_for_the_rescue_the_trials_stay_in_memory_until_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with open_study(tmp_path / "study.db") as study:
        run_trials(study, 2)
        (tmp_path / "study.db").unlink()
        with read_only(tmp_path), pytest.raises(UnwritableError, match="still in memory"):
            study.ask()
        assert len(study.trials) == 2
        with pytest.warns(RuntimeWarning, match=r"study-rescued\.db"):
            run_trials(study, 1)
    assert len(read(tmp_path / "study-rescued.db").trials) == 3


def test_a_file_that_was_only_touched_or_read_or_written_to_by_sqlite_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_study(path) as study:
        run_trials(study, 2)
        os.utime(path, (0, 0))
        run_trials(study, 1)
        shutil.copy(path, tmp_path / "copy.db")
        run_trials(study, 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("CREATE TABLE notes (text)")
            other.execute("INSERT INTO notes VALUES ('mine')")
            other.execute("PRAGMA wal_checkpoint")
        run_trials(study, 1)
    assert len(read(path).trials) == 5
    assert not (tmp_path / "study-rescued.db").exists()
