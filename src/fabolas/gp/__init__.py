"""Gaussian processes on arrays in the unit cube, for K hyperparameter samples at once."""
