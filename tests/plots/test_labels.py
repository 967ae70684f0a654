"""Texts of trials."""

from fabolas.plots.labels import ORIGINS, why


def test_why_a_trial_was_suggested_fits_a_column_of_the_table():
    assert all(len(text) <= 24 for text in ORIGINS.values())
    assert why("bracket 1 rung 0") == "bracket 1 rung 0"
