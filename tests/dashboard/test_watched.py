"""A watched file is read when it has changed, and is never written to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fabolas
from fabolas.dashboard.comparison import compute, drawing
from fabolas.dashboard.pace import UpdateRest
from fabolas.dashboard.pages import directory_sections
from fabolas.dashboard.watched import WatchedDirectory, WatchedStudy
from fabolas.plots import CannotDraw
from tests.helpers.problems import SIZE, SPACE, evaluate
from tests.helpers.study_files import write_empty_study, write_study


def test_each_part_is_computed_once_until_the_file_changes(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask())
        watched = WatchedStudy(tmp_path / "run.db")
        computed: list[int] = []

        def compute_part() -> str:
            computed.append(len(watched.study().trials))
            return "{}"

        for _ in range(3):
            watched.part("name", compute_part)
        assert computed == [1]
        evaluate(study, study.ask())
        for _ in range(3):
            watched.part("name", compute_part)
        assert computed == [1, 2]


def test_the_version_changes_when_a_run_starts_and_when_it_ends(tmp_path: Path) -> None:
    watched = WatchedStudy(tmp_path / "run.db")
    versions = [watched.version()]
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        versions.append(watched.version())
        assert watched.running
        evaluate(study, study.ask())
        versions.append(watched.version())
    versions.append(watched.version())
    assert not watched.running
    assert len(set(versions)) == 4
    assert watched.version() == versions[-1]


def test_what_runs_now_goes_on_while_the_file_does_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        study.ask()
        watched = WatchedStudy(tmp_path / "run.db")
        first = watched.overview()
        started = watched.study().file.started[0]
        monkeypatch.setattr("fabolas.dashboard.watched.time.time", lambda: started + 100.0)
        later = watched.overview()
    assert later.answer is first.answer
    assert later.state.trials[0].seconds == pytest.approx(100.0)


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    path = write_study(tmp_path / "run.db", 5)
    before = {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()}
    watched = WatchedStudy(path)
    watched.overview(), watched.figure("history"), watched.trials()
    WatchedDirectory(tmp_path).comparison()
    assert {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()} == before


def test_while_a_run_goes_on_changes_are_taken_up_after_a_rest(tmp_path: Path) -> None:
    now = [0.0]
    pace = UpdateRest(lambda: 100.0, lambda: now[0])
    watched = WatchedStudy(tmp_path / "run.db", pace)
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask())
        first = watched.version()
        pace.add(0.2)  # as if the last update had taken 0.2 s
        study.ask()
        for now[0] in (0.0, 19.0):
            assert watched.version() == first
            assert len(watched.study().trials) == 1
            assert (
                watched.overview().state.trials is None
            )  # the file says something newer, which was not read
        now[0] = 21.0
        assert watched.version() != first
        assert [trial.id for trial in watched.overview().state.trials or ()] == [1]
        pace.add(0.2)
        study.tell(1, 0.5, cost=1.0)
    assert len(watched.study().trials) == 2  # the run has ended: nothing can be slowed down


def test_opening_a_page_is_free_and_updating_it_is_not(tmp_path: Path) -> None:
    path = write_study(tmp_path / "run.db", 3)
    worked: list[bool] = []

    class Noted(UpdateRest):
        @contextmanager
        def work(self, *, free: bool = False) -> Iterator[None]:
            worked.append(free)
            yield

    watched = WatchedStudy(path, Noted())
    watched.trials()
    watched.trials()
    assert worked == [True, True]  # the table, and within it the file
    os.utime(path)
    watched.trials()
    assert worked[2:] == [False, False]


def test_a_directory_lists_databases_and_says_which_are_no_studies(tmp_path: Path) -> None:
    write_study(tmp_path / "b.db", 3)
    write_study(tmp_path / "a.db", 3)
    (tmp_path / "notes.txt").write_text("no study")
    (tmp_path / "folder").mkdir()
    watched = WatchedDirectory(tmp_path)
    before = watched.version()
    assert list(watched.studies()) == ["a.db", "b.db"]
    (tmp_path / "broken.db").write_bytes((tmp_path / "a.db").read_bytes()[:3000])
    assert watched.version() != before
    loaded = watched.loaded()
    assert isinstance(loaded["broken.db"], str)
    assert not isinstance(loaded["a.db"], str)


def test_the_comparison_has_the_answers_of_each_study(tmp_path: Path) -> None:
    studies = {
        name: fabolas.load(write_study(tmp_path / f"{name}.db", 8, seed=seed))
        for name, seed in (("first", 1), ("second", 2))
    }
    record = compute({**studies, "empty": fabolas.load(write_empty_study(tmp_path / "empty.db"))})
    assert [line.name for line in record.lines] == ["first", "second"]
    for line in record.lines:
        study = studies[line.name]
        for when, loss in zip(line.time, line.loss, strict=True):
            until = [
                t.loss for t in study.trials if t.elapsed <= when and t.fidelity["size"] == SIZE["size"][1]
            ]
            assert loss == min(each for each in until if each is not None)
        assert line.time[-1] == study.elapsed  # the last answer holds until the end
        assert line.verified


def test_with_a_model_the_answers_are_those_that_the_run_computed(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as running:
        for x in (0.2, 0.4, 0.6, 0.8):
            evaluate(running, running.ask_for({"x": x, "y": 0.5}, {"size": 1000}))
            running.incumbent()
    study = fabolas.load(tmp_path / "run.db")
    (line,) = compute({"run": study}).lines
    answers = [(when, each) for when, each in study.trajectory if not each.preliminary]
    assert line.time[:-1].tolist() == [when for when, _ in answers]
    assert line.loss[:-1].tolist() == [each.loss for _, each in answers]


def test_the_list_of_studies_says_that_no_time_is_recorded(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as study:
        study.add({"x": 0.2, "y": 0.5}, None, 0.3, 60.0)
    shown = directory_sections(WatchedDirectory(tmp_path))["studies"]
    assert "<td>not computed</td>" in shown
    assert "<td>not recorded</td>" in shown


def test_a_maximised_study_has_a_panel_of_its_own(tmp_path: Path) -> None:
    studies = {
        name: fabolas.load(write_study(tmp_path / f"{name}.db", 8, direction=direction))
        for name, direction in (("accuracy", "maximize"), ("error", "minimize"))
    }
    panels = drawing(compute(studies)).panels
    assert [panel.y.title for panel in panels] == [
        "predicted loss at the target", "predicted value at the target",
    ]  # fmt: skip
    assert [panel.layers[0].legend for panel in panels] == ["error", "accuracy"]  # type: ignore[union-attr]
    (alone,) = drawing(compute({"accuracy": studies["accuracy"]})).panels
    assert alone.y.title == "predicted value at the target"


def test_a_new_study_changes_the_style_of_no_other_one(tmp_path: Path) -> None:
    names = [f"run {i}.db" for i in range(9, 0, -1)]  # the newest one is the first by name
    studies: dict[str, fabolas.study.LoadedStudy] = {}
    styles: dict[str, tuple[str, str]] = {}
    for name in names:
        studies[name] = fabolas.load(write_study(tmp_path / name, 3))
        record = compute(dict(sorted(studies.items())))
        now = {line.name: line.style for line in record.lines}
        assert now.items() >= styles.items()
        assert len(set(now.values())) == len(now)
        styles = now
    colours = {colour for colour, _ in list(styles.values())}
    assert len(colours) == 6


def test_answers_for_which_it_was_too_early_are_not_compared(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask_for({"x": 0.2, "y": 0.5}, {"size": 10}))
        incumbent = study.incumbent()
        assert incumbent is not None
        assert incumbent.preliminary
    loaded = fabolas.load(tmp_path / "run.db")
    assert loaded.trajectory
    with pytest.raises(CannotDraw, match="No study has an answer yet"):
        compute({"run": loaded})
    assert "too early" in directory_sections(WatchedDirectory(tmp_path))["studies"]


def test_without_an_answer_there_is_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(CannotDraw, match="No study has an answer yet"):
        compute({"empty": fabolas.load(write_empty_study(tmp_path / "empty.db"))})
