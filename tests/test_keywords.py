"""Wrong keywords are answered with the right ones."""

import inspect
from typing import Any

import pytest

import fabolas
from fabolas import Study
from fabolas.keywords import _OTHER_NAMES, INTERNAL
from fabolas.sklearn import FabolasSearchCV
from tests.helpers.problems import SIZE, SPACE, bowl, minimize


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("n_jobs", "workers"),
        ("timeout", "time_budget, or trial_timeout for one trial"),
        ("n_trials", "max_trials"),
        ("mode", "direction"),
        ("random_state", "seed"),
        ("points_to_evaluate", "initial"),
        ("verbose", "progress"),
        ("n_startup_trials", "n_initial"),
        ("max_trial", "max_trials"),
        ("total_time", "time_budget"),
        ("target", "target_loss"),
        ("resume", "storage, which continues a run, or resume=True of fabolas.Fidelity"),
        ("Seed", "seed"),
        ("epochs", "fidelities"),
        ("iterations", "max_trials"),
        ("targetshare", "target_share"),
    ],
)
def test_a_wrong_keyword_gets_a_human_answer(wrong: str, right: str) -> None:
    settings: dict[str, Any] = {"max_trials": 1, "strategy": "fabolas", wrong: 3}
    with pytest.raises(TypeError, match=rf"^minimize\(\) has no argument {wrong!r}; did you mean {right}\?$"):
        minimize(bowl, **settings)
    with pytest.raises(TypeError, match=rf"has no argument {wrong!r}"):
        fabolas.maximize(bowl, SPACE, SIZE, **settings)


@pytest.mark.parametrize("name", ["cv", "scoring", "refit"])
def test_who_asks_for_cross_validation_is_told_where_it_is(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^minimize\(\) has no argument '{name}'; fabolas.sklearn.FabolasSearchCV has$"
    ):
        minimize(bowl, max_trials=1, **{name: 3})
    assert name in inspect.signature(FabolasSearchCV).parameters


def test_a_study_says_who_has_what_it_has_not() -> None:
    with pytest.raises(
        TypeError, match=r"Study\(\) has no argument 'n_jobs'; did you mean workers of fabolas.min"
    ):
        Study(SPACE, n_jobs=2)
    with pytest.raises(TypeError, match=r"Study\(\) has no argument 'random_state'; did you mean seed\?"):
        Study(SPACE, random_state=2)


@pytest.mark.parametrize("wrong", ["clck", "overheads", "modell", "aquisition", "xyzzy"])
def test_no_message_names_what_is_internal(wrong: str) -> None:
    with pytest.raises(TypeError, match=wrong) as said:
        minimize(bowl, max_trials=1, strategy="fabolas", **{wrong: 3})
    words = str(said.value).replace(repr(wrong), "").replace(",", "").split()
    assert not INTERNAL & set(words)


def test_every_name_that_is_proposed_exists() -> None:
    names = {*inspect.signature(fabolas.minimize).parameters, "n_initial"}
    assert {right.split(",")[0] for right in _OTHER_NAMES} <= names | {"callbacks"}
    wrong = [other for others in _OTHER_NAMES.values() for other in others.split()]
    assert not set(wrong) & names
    assert len(set(wrong)) == len(wrong)


def test_an_option_of_the_strategy_is_no_mistake() -> None:
    assert minimize(bowl, max_trials=1, strategy="hyperband", eta=4).trials


def test_the_message_names_the_function_that_was_called() -> None:
    with pytest.raises(TypeError, match=r"^maximize\(\) has no argument 'n_jobs'; did you mean workers\?$"):
        fabolas.maximize(bowl, SPACE, SIZE, max_trials=1, n_jobs=2)
    with pytest.raises(TypeError, match=r"^maximize\(\) has no argument 'direction'; minimize has$"):
        fabolas.maximize(bowl, SPACE, SIZE, max_trials=1, direction="minimize")
    with pytest.raises(
        TypeError, match=r"mean time_budget, or trial_timeout for one trial, of fabolas.minimize\?$"
    ):
        Study(SPACE, timeout=2)


def test_a_name_that_nobody_knows_is_answered_with_the_options_that_exist() -> None:
    with pytest.raises(
        TypeError, match=r"^minimize\(\) has no argument 'xyzzy'.* are n_initial, target_share"
    ):
        fabolas.minimize(bowl, SPACE, SIZE, max_trials=1, xyzzy=2)
