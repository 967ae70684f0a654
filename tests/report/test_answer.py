"""The answer in sentences says what the study knows, and no more."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fabolas
from fabolas.report.answer import Answer, count, percent, plain, plus_minus
from fabolas.report.content import overview
from fabolas.report.progress import RunProgress
from fabolas.report.sections import sections
from fabolas.strategies.random import Random
from tests.helpers.problems import SIZE, SPACE, evaluate
from tests.helpers.study_files import write_empty_study, write_failed_study, write_study


def answer_of(path: Path) -> Answer:
    return Answer.of(fabolas.load(path))


@pytest.mark.parametrize(
    ("value", "std", "text"),
    [
        (0.0234567, 0.00123, "0.0235 ± 0.0012"),
        (0.022349, 0.000014, "0.022349 ± 0.000014"),
        (0.9999645, 2.5e-6, "0.9999645 ± 0.0000025"),
        (0.5, 0.25, "0.50 ± 0.25"),
        (123.456, 12.3, "123 ± 12"),
        (0.25, 0.0, "0.25"),
        (-0.93128, 0.0042, "-0.9313 ± 0.0042"),
        (0.0, 0.001, "0.0000 ± 0.0010"),
        (12_345_678.9, 1_412.0, "12,345,700 ± 1,400"),
        (-12_345.678, 0.4, "-12,345.68 ± 0.40"),
        (41_234.5, 21_000.0, "41,000 ± 21,000"),
        (12_345_678.9, 0.0, "12,345,679"),
        (3.2e9, 1e7, "(3.200 ± 0.010)×10⁹"),
        (3.21e-8, 4.2e-9, "(3.21 ± 0.42)×10⁻⁸"),
        (0.00067, 0.00015, "(6.7 ± 1.5)×10⁻⁴"),
        (0.0008, 0.0012, "0.0008 ± 0.0012"),
        (0.5, float("inf"), "0.5"),
        (-0.000573512, 0.0, "-5.735×10⁻⁴"),
        (0.0, 0.0, "0"),
    ],
)
def test_a_loss_has_the_digits_that_its_deviation_justifies(value: float, std: float, text: str) -> None:
    assert plus_minus(value, std) == text


def test_a_measured_loss_is_written_as_the_predicted_one() -> None:
    assert [plain(loss) for loss in (0.03112, 999.9, 999.96, -1193.2, 9999.8, 12_345.6)] == [
        "0.03112",
        "999.9",
        "1,000",
        "-1,193",
        "10,000",
        "12,346",
    ]
    assert plain(0.99996, 2.5e-6) == "0.99996"
    assert plain(1.50012e9, 9.2e5) == "1.50012×10⁹"


def test_no_line_ends_within_the_target(tmp_path: Path) -> None:
    assert answer_of(write_study(tmp_path / "run.db", 3)).where() == " at the target (size\u00a01,000)"


def test_counts_and_shares_are_words() -> None:
    assert [count(n) for n in (0.191, 1.0, 6.34, 200.4, 12_345.0)] == [
        "0.19 full trainings", "1 full training", "6.3 full trainings", "200 full trainings", "12,345 full trainings",
    ]  # fmt: skip
    shares = [percent(share).replace("\u00a0", " ") for share in (0.0, 0.001, 0.034, 1.0)]
    assert shares == ["0 %", "less than 1 %", "3 %", "100 %"]


def test_the_search_costs_its_time_divided_by_that_of_one_full_training(tmp_path: Path) -> None:
    study = fabolas.load(write_study(tmp_path / "run.db", 30))
    answer = Answer.of(study)
    incumbent = study.incumbent()
    assert incumbent is not None
    costs = [t.cost for t in study.trials if t.id in incumbent.trial_ids and t.fidelity["size"] == 1000]
    assert answer.full_training is not None
    assert answer.full_training.measured
    assert answer.full_training.seconds == pytest.approx(np.mean(costs))
    assert answer.full_trainings == pytest.approx(study.elapsed / np.mean(costs))
    assert f"{count(study.elapsed / np.mean(costs))}: one training" in answer.cost()
    assert answer.verification().startswith("It was evaluated there once, with the loss ")


def test_an_answer_that_was_not_verified_says_so_and_its_cost_is_predicted(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as study:
        for x in (0.2, 0.4, 0.6):
            evaluate(study, study.ask_for({"x": x, "y": 0.5}, {"size": 50}))
        predicted = study.predict(study.best_config).cost[0]
    answer = answer_of(tmp_path / "run.db")
    assert answer.measured == ()
    assert "was evaluated below the target only, in one trial" in answer.verification()
    assert answer.incumbent is not None
    stated = replace(answer, incumbent=replace(answer.incumbent, preliminary=False))
    assert stated.verification().endswith(" one trial. The ± is one standard deviation of the prediction.")
    assert answer.full_training is not None
    assert not answer.full_training.measured
    assert answer.full_training.seconds == pytest.approx(predicted, rel=0.5)
    assert "is predicted to take" in answer.cost()


def test_without_an_answer_it_says_why(tmp_path: Path) -> None:
    assert answer_of(write_empty_study(tmp_path / "empty.db")).why_none() == (
        "There is no answer yet: no trial has ended."
    )
    failed = answer_of(write_failed_study(tmp_path / "failed.db"))
    assert (failed.why_none(), failed.last_error()) == (
        "There is no answer: all 3 trials failed.",
        "The last error was: RuntimeError: CUDA out of memory",
    )


def test_before_the_target_can_be_predicted_it_says_what_was_measured(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask_for({"x": 0.2, "y": 0.5}, {"size": 10}))
        (only,) = study.trials
    answer = answer_of(tmp_path / "run.db")
    assert answer.preliminary
    assert answer.too_early() == (
        "It is too early to predict the loss at the target (size\u00a01,000). The best loss so far is "
        f"{only.loss:.4g}, measured with size 10."
    )
    assert answer.verification() == "The configuration was evaluated below the target only, in one trial."
    shown = sections(overview(fabolas.load(tmp_path / "run.db"), 0.0), live=False)["answer"]
    assert "It is too early to predict" in shown
    assert "predicted loss of" not in shown
    assert "Best configuration so far" in shown


def test_a_maximised_study_states_its_value(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    fabolas.maximize(
        lambda config, size: fabolas.Outcome(0.9 - config["x"] / 10, cost=size / 10),
        SPACE, SIZE, max_trials=8, strategy="random", seed=0, storage=path, progress=False,
    )  # fmt: skip
    study = fabolas.load(path)
    answer, best = Answer.of(study), max(trial.loss or 0.0 for trial in study.trials)
    assert answer.what == "value"
    assert answer.loss() == f"{best:.4g}"
    assert answer.verification() == f"It was evaluated there once, with the value {best:.4g}."


def test_the_headline_says_whether_it_is_a_measurement_or_a_prediction(tmp_path: Path) -> None:
    random = sections(overview(fabolas.load(write_study(tmp_path / "a.db", 12)), 0.0), live=False)["answer"]
    assert "The best configuration has a measured loss of" in random
    assert "predicted" not in random
    assert "standard deviation" not in random
    with fabolas.Study(SPACE, SIZE, seed=0, effort=0.0, storage=tmp_path / "b.db") as study:
        for x in (0.2, 0.4, 0.6):
            evaluate(study, study.ask_for({"x": x, "y": 0.5}, {"size": 1000}))
    modelled = sections(overview(fabolas.load(tmp_path / "b.db"), 0.0), live=False)["answer"]
    assert "The best configuration has a predicted loss of" in modelled
    assert ">verified<" in modelled


def test_a_run_that_ended_before_its_budget_says_so(tmp_path: Path) -> None:
    path = write_study(tmp_path / "run.db", 12)
    assert RunProgress.of(fabolas.load(path).file, 0.0).notes == ()
    file = fabolas.load(path).file
    early = replace(file, trials=file.trials[:5], suggestions=file.suggestions[:6], started={5: 0.0})
    assert RunProgress.of(early, 0.0).notes == (
        "The last run ended before its budget: it used 5 of 12 trials. A trial had not ended. "
        "Run it again to continue.",
    )


def test_only_a_live_page_says_that_a_study_does_not_run(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask())
        page = overview(fabolas.load(tmp_path / "run.db"), 0.0)
        assert "running when this report was made" in sections(page, live=False)["head"]
        assert ">running<" in sections(page, live=True)["head"]
        assert "The search has taken " in sections(page, live=True)["answer"]
    page = overview(fabolas.load(tmp_path / "run.db"), 0.0)
    assert "running" not in sections(page, live=False)["head"]
    assert "The search took " in sections(page, live=False)["answer"]
    assert "not running" in sections(page, live=True)["head"]


class Mine(Random):
    name = "mine"


def test_with_a_strategy_of_the_user_it_is_the_last_answer_of_the_run(tmp_path: Path) -> None:
    strategy = Mine(fabolas.Space(SPACE, SIZE))
    with fabolas.Study(SPACE, SIZE, strategy=strategy, seed=0, storage=tmp_path / "run.db") as study:
        for _ in range(4):
            evaluate(study, study.ask())
        study.incumbent()
    loaded = fabolas.load(tmp_path / "run.db")
    with pytest.raises(ValueError, match="'mine'"):
        loaded.incumbent()
    assert Answer.of(loaded).incumbent == (loaded.trajectory[-1][1] if loaded.trajectory else None)


def test_a_study_of_trials_from_elsewhere_has_taken_no_time(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, seed=0, storage=tmp_path / "run.db") as study:
        study.add({"x": 0.2, "y": 0.5}, None, 0.3, 60.0)
    answer = answer_of(tmp_path / "run.db")
    said = answer.cost().replace("\u00a0", " ")
    assert said == (
        "No time is recorded: the trials were measured elsewhere, or their costs are not known. One training of this "
        "configuration at the target takes 1 min."
    )
    numbers = sections(overview(fabolas.load(tmp_path / "run.db"), 0.0), live=False)["numbers"]
    assert "At the target" in numbers
    assert "Overhead" not in numbers
    assert "full training" not in numbers
