"""Answers to keyword arguments that do not exist, for people who know another library."""

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

# Names of other libraries (Optuna, scikit-learn, hyperopt, Ray Tune, scikit-optimize, SMAC) -> ours.
_OTHER_NAMES = {
    "workers": "n_jobs n_workers num_workers max_workers jobs n_parallel parallelism max_concurrent_trials nproc",
    "max_trials": "n_trials n_calls n_iter n_iterations max_evals max_iter max_evaluations "
    "num_samples n_evals trials iterations",
    "time_budget": "budget time_limit max_time total_time walltime wallclock_limit time_budget_s max_runtime",
    "time_budget, or trial_timeout for one trial": "timeout",
    "trial_timeout": "trial_time_limit timeout_per_trial trial_walltime_limit",
    "trial_memory": "memory memory_limit max_memory mem_limit",
    "seed": "random_state rng rstate random_seed",
    "direction": "mode maximise minimise maximize directions",
    "initial": "points_to_evaluate x0 initial_points init initial_configs init_points warm_start",
    "strategy": "sampler algo algorithm optimizer search_alg method",
    "storage": "db file path filename study_name checkpoint",
    "progress": "verbose verbosity show_progress_bar progress_bar disp",
    "space": "dimensions search_space domain param_space config_space params parameters param_distributions",
    "fidelities": "fidelity size sizes resources budgets epochs rows min_size max_size",
    "objective": "func fn function",
    "callbacks": "callback on_trial_end hooks",
    "max_failures": "max_errors n_retries catch",
    "fresh_budget": "restart",
    "storage, which continues a run, or resume=True of fabolas.Fidelity": "resume",
    "target_loss": "target stop_at target_value goal threshold",
    "patience": "early_stopping no_improvement n_iter_no_change",
    "executor": "client pool cluster backend",
    "n_initial": "n_initial_points n_startup_trials n_random_starts n_init",
}
_OURS = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}
_OF_SEARCH_CV = frozenset({"cv", "scoring", "refit", "estimator", "error_score", "return_train_score"})


# Arguments and options for experiments and tests. No message names them.
INTERNAL = frozenset({"overhead", "clock", "model", "acquisition"})


def check_keywords(
    given: Iterable[str], function: Callable[..., Any], options: Collection[str], called: str = ""
) -> None:
    """Refuse names of arguments that exist elsewhere or are misspelt, and say what they are called here.

    Args:
        given: Keyword arguments that are not parameters of the function: options of the strategy, or mistakes.
        function: What was called.
        options: The options of the strategy.
        called: The name of what was called, if it is not that of the function.

    Raises:
        TypeError: If there is a name that is not an option. It says what was probably meant, or which options exist.
    """
    called = called or function.__qualname__
    arguments = [name for name in inspect.signature(function).parameters if name not in ("self", "options")]
    known = [name for name in (*arguments, *options) if name not in INTERNAL]
    for name in given:
        if name in _OF_SEARCH_CV and name not in options:
            raise TypeError(f"{called}() has no argument {name!r}; fabolas.sklearn.FabolasSearchCV has")
        guess = None if name in options else _guess(name, known)
        if guess is not None:
            raise TypeError(f"{called}() has no argument {name!r}; did you mean {guess}?")
        if options and name not in options:
            shown = ", ".join(option for option in options if option not in INTERNAL)
            raise TypeError(
                f"{called}() has no argument {name!r}, and its strategy no option of that name; the options of the "
                f"strategy are {shown}"
            )


def similar_keyword(name: str, known: Collection[str]) -> str | None:
    """Which of the known names was meant, with words if there are two possibilities; None if there is no guess."""
    guess = _OURS.get(name.lower())
    if guess is not None and guess.split(",")[0] in known:
        return guess
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return close[0] if close else None


def _guess(name: str, known: list[str]) -> str | None:
    similar, guess = similar_keyword(name, known), _OURS.get(name.lower())
    if similar is not None or guess is None:
        return similar
    return f"{guess}{',' if ',' in guess else ''} of fabolas.minimize"
