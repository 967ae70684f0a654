"""scikit-learn's distributions as a search space."""

from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy import stats

from fabolas import Categorical, Fidelity, Float, Integer, Ordinal, Space
from fabolas.sklearn.distributions import parse_space


class TestDistributions:
    def test_scipy_distributions_and_lists_become_the_same_ranges(self) -> None:
        space = parse_space(
            {
                "a": stats.uniform(1, 2),
                "b": stats.loguniform(1e-3, 1e3),
                "c": stats.randint(2, 9),
                "d": ["x", None],
                "e": [10, 20, 50],
                "f": np.array([3.0, 2.0, 1.0]),
                "g": [3, 1, 2],
                "h": Integer(1, 8, log=True),
            },
            None,
        )
        assert space == Space(
            {
                "a": Float(1, 3),
                "b": Float(1e-3, 1e3, log=True),
                "c": Integer(2, 8),
                "d": Categorical(("x", None)),
                "e": Ordinal((10, 20, 50)),
                "f": Ordinal((3.0, 2.0, 1.0)),
                "g": Categorical((3, 1, 2)),
                "h": Integer(1, 8, log=True),
            }
        )

    @pytest.mark.parametrize(
        "spec", [stats.norm(0, 1), stats.loguniform(1, 10, loc=2), stats.poisson(3), 5, object()]
    )
    def test_what_cannot_be_searched_is_refused_by_name(self, spec: Any) -> None:
        with pytest.raises(TypeError, match=r"parameter 'C': expected scipy\.stats\.uniform"):
            parse_space({"C": spec}, None)

    def test_a_single_value_must_be_in_a_list(self) -> None:
        for value in (5, "rbf", None, True):
            with pytest.raises(TypeError, match=r"parameter 'C': .*put a single value into a list"):
                parse_space({"C": value}, None)

    def test_single_values_are_choices_if_there_is_nothing_else(self) -> None:
        single = {"a": [5], "b": range(1, 2)}
        space = parse_space(single, None)
        assert space.enumerate_configurations(10).tolist() == [[0.5, 0.5]]  # type: ignore[union-attr]
        assert space.decode(np.array([0.5, 0.5]))[0] == {"a": 5, "b": 1}
        assert Space.from_description(space.describe()) == space
        assert parse_space({**single, "c": [1, 2]}, None).names == ("c",)

    def test_ranges_mean_the_same_as_in_every_other_space(self) -> None:
        for numbers in (range(1, 6), range(10, 60, 10), range(3, 0, -1)):
            assert parse_space({"a": numbers, "b": [1, 2]}, None) == Space({"a": numbers, "b": [1, 2]})

    def test_a_choice_that_is_there_twice_is_one_choice(self) -> None:
        assert parse_space({"C": [3, 3, 4]}, None) == Space({"C": Categorical((3, 4))})

    def test_a_list_of_one_space_is_that_space(self) -> None:
        assert parse_space([{"C": [3, 4]}], None) == Space({"C": Categorical((3, 4))})  # type: ignore[arg-type]

    def test_a_distribution_without_its_range_is_to_be_called(self) -> None:
        with pytest.raises(
            TypeError, match=r"got scipy's uniform without arguments; call it: uniform\(\.\.\.\)"
        ):
            parse_space({"C": stats.uniform}, None)

    def test_several_spaces_are_refused(self) -> None:
        with pytest.raises(TypeError, match="got several spaces in a list; put alternatives"):
            parse_space([{"a": [1, 2]}, {"b": [1, 2]}], None)  # type: ignore[arg-type]

    def test_spaces_of_ours_and_of_configspace_are_taken_as_they_are(self) -> None:
        rows = Fidelity(10, 100)
        for parameters in (Space({"C": Float(0, 1)}), ConfigurationSpace({"C": (0.0, 1.0)})):
            space = parse_space(parameters, rows)
            assert space.names == ("C",)
            assert space.fidelities == {"n_samples": rows}
        with pytest.raises(ValueError, match="got one with the fidelity size"):
            parse_space(Space({"C": Float(0, 1)}, {"size": (1, 2)}), rows)

    def test_the_number_of_rows_gives_way_to_a_parameter_of_that_name(self) -> None:
        assert "n_samples" not in parse_space({"n_samples": [1, 2]}, Fidelity(10, 100)).fidelities

    def test_a_range_of_one_number_is_that_number(self) -> None:
        space = parse_space({"a": stats.randint(3, 4), "b": stats.uniform(0, 1)}, None)
        assert space.decode(np.array([0.5]))[0]["a"] == 3

    def test_what_is_wrong_is_said_of_the_parameter_by_its_name(self) -> None:
        for wrong in ([], [1, [], []], stats.norm(0, 1), stats.loguniform(1, 10, loc=2), object()):
            with pytest.raises((ValueError, TypeError), match="parameter 'b': "):
                parse_space({"a": [1, 2], "b": wrong}, None)
        with pytest.raises(TypeError, match="got scipy's norm\\(loc=1\\)"):
            parse_space({"b": stats.norm(loc=1)}, None)

    def test_no_shift_is_no_shift(self) -> None:
        space = parse_space({"a": stats.loguniform(a=1.0, b=10.0, loc=0)}, None)
        assert space.decode(np.array([1.0]))[0] == {"a": 10.0}
