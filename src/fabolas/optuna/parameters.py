"""The parameters of an Optuna study as axes of the unit cube, and the conditions that its trials show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from fabolas._types import BoolArray
from fabolas.space import Categorical, Float, Integer
from fabolas.space.rules import Conjunction, Membership, Rule

N_AGREEING = 10  # if this many last trials have the same range of a parameter, it is the range from now on
MAX_PARENT_VALUES = 100  # a parameter with more values is not considered as the cause of a condition
_LARGEST_INTEGER = 10**12  # bound of `Integer`


@dataclass(frozen=True)
class Parameter:
    """A distribution of Optuna and its axis. On the axis, choices and values with a step are the integers 0, 1, 2, ...

    Attributes:
        distribution: As the objective suggests it.
        axis: In the unit cube.
    """

    distribution: BaseDistribution
    axis: Float | Integer | Categorical

    @classmethod
    def of(cls, distribution: BaseDistribution) -> Parameter:
        """The parameter of a distribution with more than one value.

        Raises:
            TypeError: If Optuna has a kind of distribution that is not known here.
        """
        if isinstance(distribution, CategoricalDistribution):
            return cls(distribution, Categorical(tuple(range(len(distribution.choices)))))
        if not isinstance(distribution, FloatDistribution | IntDistribution):
            raise TypeError(
                "expected a float, int or categorical distribution, "
                f"got {type(distribution).__name__}; suggest the parameter with one of these"
            )
        low, high, step = distribution.low, distribution.high, _step(distribution)
        if step is not None:
            return cls(distribution, Integer(0, round((high - low) / step)))
        if isinstance(distribution, FloatDistribution) or max(abs(low), abs(high)) > _LARGEST_INTEGER:
            return cls(distribution, Float(low, high, log=distribution.log))
        return cls(distribution, Integer(int(low), int(high), log=distribution.log))

    def coordinate(self, value: Any) -> float | None:
        """The coordinate of a value of Optuna; None if the distribution does not have it."""
        try:
            internal = self.distribution.to_internal_repr(value)
        except ValueError:  # not one of the choices
            return None
        if not self.distribution._contains(internal):
            return None
        step = _step(self.distribution)
        if step is not None:
            internal = round((internal - self.distribution.low) / step)  # type: ignore[attr-defined]
        return self.axis.coordinate(internal if type(self.axis) is Float else round(internal))

    def value(self, on_axis: Any) -> Any:
        """The value of Optuna for a value of the axis."""
        distribution, step = self.distribution, _step(self.distribution)
        if step is not None:
            on_axis = min(distribution.low + on_axis * step, distribution.high)  # type: ignore[attr-defined]
        return distribution.to_external_repr(on_axis)

    def draw(self, rng: np.random.Generator) -> Any:
        """A random value, uniform on the axis."""
        return self.value(self.axis.value(rng.random()))


def learned_parameters(trials: Iterable[FrozenTrial]) -> dict[str, Parameter]:
    """The parameters that the trials have suggested, in order of their first appearance.

    If the range of a parameter differs between trials, it is that of the last trials if these agree, else the range
    that includes all of them. Parameters with a single value are left out.

    Args:
        trials: In the order of their numbers.
    """
    seen: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            seen.setdefault(name, []).append(distribution)
    chosen = {name: _one_distribution(each) for name, each in seen.items()}
    return {name: Parameter.of(each) for name, each in chosen.items() if not each.single()}


def learned_conditions(parameters: Mapping[str, Parameter], ended: Sequence[FrozenTrial]) -> dict[str, Rule]:
    """When each parameter is active: name -> rule, for those that some trials lack.

    A parameter is inactive for those values of other parameters that were seen only in trials without it. The rule
    uses few other parameters: first the one that explains most of these trials, then one for the rest, and so on. A
    parameter has no rule, and is always active, if no other parameter with few values explains when it is absent. The
    first trial that contradicts a wrong rule corrects it.

    Args:
        parameters: The parameters of the study.
        ended: Trials that have suggested all that they needed.
    """
    present = {name: np.array([name in t.distributions for t in ended], dtype=bool) for name in parameters}
    # Only a parameter with at least as many trials can be the cause; this order also excludes cycles.
    order = sorted(parameters, key=lambda name: -int(present[name].sum()))
    values = {
        name: np.array([_coordinate(parameters[name], name, t) for t in ended])
        for name in order
        if _n_values(parameters[name]) <= MAX_PARENT_VALUES
    }
    rules = {}
    for i, child in enumerate(order):
        if present[child].all() or not present[child].any():
            continue
        parts: list[Rule] = []
        unexplained = ~present[child]
        parents = [p for p in order[:i] if p in values and present[p][present[child]].all()]
        while unexplained.any() and parents:
            excluded = {p: _values_without(values[p], present[child]) for p in parents}
            explained = {p: unexplained & (np.isin(values[p], excluded[p]) | ~present[p]) for p in parents}
            best = max(parents, key=lambda p: int(explained[p].sum()))
            if not explained[best].any():
                break
            parts.append(_unless(best, parameters[best], excluded[best]))
            unexplained &= ~explained[best]
            parents.remove(best)
        if parts:
            rules[child] = parts[0] if len(parts) == 1 else Conjunction(tuple(parts))
    return rules


def _step(distribution: BaseDistribution) -> float | None:
    """The step of a distribution with values low + i * step; None for others."""
    step: float | None = getattr(distribution, "step", None)
    return None if step is None or (isinstance(distribution, IntDistribution) and step == 1) else step


def _one_distribution(seen: Sequence[BaseDistribution]) -> BaseDistribution:
    """The one distribution to model, given those of all trials; its kind is that of the last one."""
    last = seen[-1]
    if all(each == last for each in seen[-N_AGREEING:]) or isinstance(last, CategoricalDistribution):
        return last
    same = [each for each in seen if isinstance(each, type(last))]
    low, high = min(each.low for each in same), max(each.high for each in same)  # type: ignore[attr-defined]
    if isinstance(last, FloatDistribution):
        return FloatDistribution(low, high, log=last.log)
    assert isinstance(last, IntDistribution), "_one_distribution expected a known kind"
    return IntDistribution(low, high, log=last.log)


def _n_values(parameter: Parameter) -> float:
    values = parameter.axis.all_values()
    return np.inf if values is None else len(values)


def _coordinate(parameter: Parameter, name: str, trial: FrozenTrial) -> float:
    """The coordinate of the trial's value, NaN without one."""
    coordinate = parameter.coordinate(trial.params[name]) if name in trial.params else None
    return np.nan if coordinate is None else coordinate


def _values_without(values: Any, present: BoolArray) -> Any:
    """The coordinates that were seen only in trials without the child."""
    return np.setdiff1d(values[~present & ~np.isnan(values)], values[present])


def _unless(name: str, parameter: Parameter, excluded: Any) -> Membership:
    """The rule that the parameter is active and has none of these coordinates."""
    every = parameter.axis.all_values()
    assert every is not None, "a parent has few values"
    allowed = [value for value in every if parameter.axis.coordinate(value) not in excluded]
    text = f"{name} in {{{', '.join(repr(parameter.value(value)) for value in allowed)}}}"
    return Membership(name, tuple(parameter.axis.coordinate(value) for value in allowed), text)
