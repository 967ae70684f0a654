"""After few trials of a noisy training the answer does not claim to be certain."""

import pytest

from experiments.noisy_training import FAR, NOISES, answer


@pytest.mark.slow
def test_few_trials_of_a_noisy_training_give_wide_intervals_and_many_exact_ones_narrow_ones() -> None:
    answers = [answer(NOISES["0.02"], 12, seed) for seed in range(8)]
    assert sum(abs(found[0]) > FAR for found in answers if found is not None) <= 2
    exact = answer(NOISES["none"], 40, 0)
    assert exact is not None
    z, relative_std = exact
    assert abs(z) < FAR
    assert relative_std < 0.02
