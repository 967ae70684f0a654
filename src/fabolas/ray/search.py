"""``FabolasSearch``: FABOLAS as a search algorithm of Ray Tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
from ray.tune.search import Searcher

from fabolas.plain_values import as_loss
from fabolas.ray.domains import split_param_space
from fabolas.space import Fidelity
from fabolas.space.fidelity import parse_fidelities, refuse_reports
from fabolas.study import Study
from fabolas.trials import Incumbent

_SECONDS = "time_total_s"  # what Tune reports as the time of a trial


class FabolasSearch(Searcher):
    """Chooses the parameters of each trial of Tune together with how much data it should use.

        search = FabolasSearch({"rows": (500, 50_000)}, seed=0)
        tuner = tune.Tuner(
            train,                                                  # reads config["C"] and config["rows"]
            param_space={"C": tune.loguniform(1e-5, 1e5)},
            tune_config=tune.TuneConfig(metric="loss", mode="min", search_alg=search, num_samples=100),
        )
        tuner.fit()
        search.incumbent()

    The fidelities are entries of the config that the trainable gets. The cost of a trial is the time that Tune reports,
    or the entry ``cost`` of the result, in seconds.

    Args:
        fidelities: Name -> (low, high) or ``fabolas.Fidelity``; the upper end is the target.
        space: Parameters by name, of Tune or of ours; None takes the ``param_space`` of the Tuner. There, only those
            of Tune are seen.
        metric: Entry of the results; None takes that of the TuneConfig. Tune passes it on only if ``param_space`` is
            not empty; give it here if the Tuner has no ``param_space``.
        mode: "min" or "max"; None takes that of the TuneConfig, as for ``metric``.
        points_to_evaluate: Configurations to evaluate first, with or without fidelities.
        seed: Whole number >= 0; None draws one.
        **options: Options of ``fabolas.Study``: ``strategy`` and those of the strategy.
    """

    def __init__(
        self,
        fidelities: Mapping[str, Fidelity | tuple[float, float]] | None = None,
        *,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        seed: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        refuse_reports(parse_fidelities(fidelities), "FabolasSearch")
        self._fidelities, self._seed, self._options = dict(fidelities or {}), seed, options
        self._first = [dict(point) for point in points_to_evaluate]
        self._constants: dict[str, Any] = {}
        self._study: Study | None = None
        self._running: dict[str, int] = {}  # Tune's id of a trial -> id of its suggestion
        self._space = dict(space) if space is not None else None
        self._open()

    @property
    def study(self) -> Study:
        """The study that decides. Its trials have the ids of suggestions, not those of Tune.

        Raises:
            RuntimeError: If there is no space, metric or mode yet.
        """
        if self._study is None:
            lacking = [n for n, v in (("metric", self._metric), ("mode", self._mode)) if not v]
            keywords = [f"{name}=" for name in lacking]
            if self._space is None:
                lacking, keywords = [*lacking, "param_space"], [*keywords, "space="]
            raise RuntimeError(
                f"expected {' and '.join(lacking)}, got none from Tune, which passes on metric, mode and param_space "
                f"only if param_space is not empty; pass {' and '.join(keywords)} to FabolasSearch"
            )
        return self._study

    def incumbent(self) -> Incumbent | None:
        """The evaluated configuration with the best expected metric at the target; None before a complete trial.

        ``get_best_result`` of Tune compares trials of all sizes, and so is not this answer.
        """
        return self.study.incumbent()

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take metric, mode and space of the Tuner; False if the study is already open, or has another space.

        Tune refuses parameters in ``config`` if this is False.

        Raises:
            TypeError: If the config has what we have no equivalent for.
        """
        searched, _ = split_param_space(config)
        if self._study is not None or (searched and self._space is not None):
            return False
        self._metric, self._mode = self._metric or metric, self._mode or mode
        if config and self._space is None:
            self._space = dict(config)
        self._open()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """The configuration of a trial, with its fidelities."""
        suggestion = self.study.ask()
        self._running[trial_id] = suggestion.id
        return {**self._constants, **suggestion.config, **suggestion.fidelity}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record how a trial ended. One without a finite metric has failed. A cost of 0 is not known."""
        if trial_id not in self._running:
            return
        suggestion, result = self._running.pop(trial_id), result or {}
        cost = result.get("cost", result.get(_SECONDS)) or None
        if error:
            self.study.fail(suggestion, "the trial ended with an error", cost=cost or 0)
            return
        metric = result.get(str(self._metric))
        try:
            loss = as_loss(metric)
        except (TypeError, ValueError):
            self.study.fail(suggestion, f"its result has {self._metric}={metric!r}", cost=cost or 0)
            return
        self.study.tell(suggestion, loss, cost=cost)

    def save(self, checkpoint_path: str) -> None:
        """Write everything to a file. Tune calls this regularly."""
        file = Path(checkpoint_path)
        new = file.with_name(file.name + ".new")
        new.write_bytes(cloudpickle.dumps(vars(self)))
        new.replace(file)  # a process that is killed while it writes leaves the old file

    def restore(self, checkpoint_path: str) -> None:
        """Continue from a file that ``save`` has written."""
        vars(self).update(cloudpickle.loads(Path(checkpoint_path).read_bytes()))

    def _open(self) -> None:
        """Open the study once space, metric and mode are known."""
        if self._space is None or not self._metric or not self._mode:
            return
        parameters, self._constants = split_param_space(self._space)
        direction: Any = {"min": "minimize", "max": "maximize"}[self._mode]
        self._study = Study(
            parameters, self._fidelities, direction=direction, seed=self._seed, **self._options
        )
        for point in self._first:
            fidelity = {name: point[name] for name in self._fidelities if name in point}
            config = {name: value for name, value in point.items() if name not in fidelity}
            self._study.enqueue(config, fidelity or None)
