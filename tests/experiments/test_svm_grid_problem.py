import json

import numpy as np
import pytest

import fabolas
from experiments.svm_grid.problem import Problem

SIZES, REPEATS = [16, 32, 64], [3, 2, 1]
GRID = np.linspace(-4.0, 4.0, 5)


def arrays():
    """Errors and seconds of a made-up SVM: bilinear at every size, so that interpolation is exact."""
    c, gamma = np.meshgrid(GRID, GRID, indexing="ij")
    valid = np.full((3, 3, 5, 5), np.nan, dtype=np.float32)
    seconds = valid.copy()
    for s, repeats in enumerate(REPEATS):
        for r in range(repeats):
            valid[s, r] = 0.5 + 0.01 * c - 0.02 * gamma + 0.003 * c * gamma - 0.1 * s + 0.01 * r
            seconds[s, r] = np.exp(0.1 * c + 2 * s + 0.05 * r) / 2
    return {
        "log_c": GRID,
        "log_gamma": GRID,
        "sizes": np.array(SIZES),
        "repetitions": np.array(REPEATS),
        "valid": valid,
        "test": valid + 0.01,
        "fit_seconds": seconds,
        "predict_seconds": seconds,
        "meta": np.array(json.dumps({"rows": 64})),
    }


def saved(path, **changes):
    np.savez_compressed(path, **(arrays() | changes))
    return path


@pytest.fixture
def path(tmp_path):
    return saved(tmp_path / "tiny.npz")


def config(log_c, log_gamma):
    return {"C": float(np.exp(log_c)), "gamma": float(np.exp(log_gamma))}


def truth(log_c, log_gamma):
    return 0.3 + 0.01 * log_c - 0.02 * log_gamma + 0.003 * log_c * log_gamma


@pytest.mark.parametrize(("log_c", "log_gamma"), [(0, 0), (-4, 4), (4, 4), (1.3, -2.7), (-3.999, 0.5)])
def test_the_truth_is_the_bilinear_surface_at_the_largest_size(path, log_c, log_gamma):
    problem = Problem.load(path)
    assert problem.truth(config(log_c, log_gamma)) == pytest.approx(truth(log_c, log_gamma), abs=1e-6)
    assert problem.test_error(config(log_c, log_gamma)) == pytest.approx(
        truth(log_c, log_gamma) + 0.01, abs=1e-6
    )


def test_loss_is_linear_and_cost_a_power_in_the_size_between_tabulated_ones(path):
    problem = Problem.load(path)
    draws = [problem(config(1, 1), 16 * np.sqrt(2), np.random.default_rng(i)) for i in range(50)]
    middle = truth(1, 1) + 0.1 + 0.05  # half way from size 16 to size 32 in log size
    # The repetition of size 16 is one of three and that of size 32 one of two, by one draw.
    expected = [middle + 0.005 * (a + b) for a, b in ((0, 0), (1, 0), (1, 1), (2, 1))]
    assert sorted({round(loss, 5) for loss, _ in draws}) == pytest.approx(expected, abs=1e-5)
    costs = [np.exp(0.1 + 1.0 + 0.025 * (a + b)) for a, b in ((0, 0), (1, 0), (1, 1), (2, 1))]
    assert sorted({round(cost, 4) for _, cost in draws}) == pytest.approx(sorted(costs), abs=1e-4)


def test_at_the_largest_size_a_call_is_the_truth(path):
    problem = Problem.load(path)
    loss, cost = problem(config(2, -1), 64, np.random.default_rng(0))
    assert loss == pytest.approx(problem.truth(config(2, -1)), abs=1e-12)
    assert cost == pytest.approx(np.exp(0.2 + 4), rel=1e-5)


def test_each_repetition_is_drawn_equally_often(path):
    problem, rng = Problem.load(path), np.random.default_rng(0)
    losses = [round(problem(config(0, 0), 16, rng)[0], 4) for _ in range(3000)]
    counts = np.unique(losses, return_counts=True)[1]
    assert len(counts) == 3
    assert np.all(np.abs(counts - 1000) < 130)  # Binomial(3000, 1/3): standard deviation 26


def test_the_same_generator_state_gives_the_same_measurement(path):
    problem = Problem.load(path)
    calls = [problem(config(0.3, 0.2), 20, np.random.default_rng(5)) for _ in range(2)]
    assert calls[0] == calls[1]


def test_the_best_is_the_lowest_cell_and_no_interpolated_point_is_lower(path):
    problem, rng = Problem.load(path), np.random.default_rng(0)
    assert problem.truth(problem.best_config) == pytest.approx(problem.best, abs=1e-12)
    assert problem.best == pytest.approx(min(truth(c, g) for c in GRID for g in GRID), abs=1e-6)
    points = rng.uniform(-4, 4, size=(500, 2))
    assert min(problem.truth(config(*p)) for p in points) >= problem.best


def test_full_cost_is_the_price_of_the_best_configuration_and_scales(path):
    problem, dear = Problem.load(path), Problem.load(path, cost_scale=100)
    _, cost = problem(problem.best_config, 64, np.random.default_rng(0))
    assert problem.full_cost == pytest.approx(cost)
    assert dear.full_cost == pytest.approx(100 * cost)
    assert dear(config(1, 1), 20, np.random.default_rng(3))[1] == pytest.approx(
        100 * problem(config(1, 1), 20, np.random.default_rng(3))[1]
    )
    assert (problem.name, dear.name) == ("tiny", "tiny-x100")


def test_its_space_and_fidelities_make_a_space_whose_every_point_it_can_evaluate(path):
    problem, rng = Problem.load(path), np.random.default_rng(0)
    space = fabolas.Space(problem.space, problem.fidelities)
    corners = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=float)
    for point in np.vstack([corners, rng.random((50, 3))]):
        chosen, fidelity = space.decode(point)
        loss, cost = problem(chosen, **fidelity, rng=rng)
        assert np.isfinite(loss)
        assert cost > 0


def test_a_table_whose_largest_size_is_incomplete_is_refused_unless_a_smaller_target_is_chosen(tmp_path):
    valid = arrays()["valid"]
    valid[2, 0, 1, 3] = np.nan
    path = saved(tmp_path / "gaps.npz", valid=valid)
    with pytest.raises(ValueError, match=r"complete table, got gaps: size 64 lacks 1 of 25 cells.*largest="):
        Problem.load(path)
    smaller = Problem.load(path, largest=32)
    assert smaller.fidelities == {"size": (16, 32)}
    assert smaller.name == "gaps-32"
    # The mean of the two repetitions at size 32.
    assert smaller.truth(config(0, 0)) == pytest.approx(0.4 + 0.005, abs=1e-6)


def test_a_gap_at_a_small_size_is_refused_too(tmp_path):
    valid = arrays()["valid"]
    valid[0, 1] = np.nan
    with pytest.raises(ValueError, match="size 16 lacks 25 of 75 cells"):
        Problem.load(saved(tmp_path / "gaps.npz", valid=valid))


@pytest.mark.parametrize(
    ("where", "size", "message"),
    [
        ((0, 0), 15, "size from 16 to 64, got 15"),
        ((0, 0), 65, "size from 16 to 64, got 65"),
        ((4.1, 0), 16, r"C from 0\.0183156 to 54\.5982"),
        ((0, -5), 16, "gamma from"),
    ],
)
def test_a_point_outside_the_table_is_an_error(path, where, size, message):
    with pytest.raises(ValueError, match=message):
        Problem.load(path)(config(*where), size, np.random.default_rng(0))


def test_wrong_arguments_of_load_say_what_was_expected(path):
    with pytest.raises(FileNotFoundError, match=r"packed table, got .*nothing"):
        Problem.load("nothing")
    with pytest.raises(ValueError, match="cost_scale > 0, got 0"):
        Problem.load(path, cost_scale=0)
    with pytest.raises(ValueError, match=r"one of \[32, 64\] as largest, got 40"):
        Problem.load(path, largest=40)
