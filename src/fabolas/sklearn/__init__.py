"""Hyperparameter search for scikit-learn's estimators. Only this package and the demo import scikit-learn."""

from fabolas.sklearn.search import FabolasSearchCV

__all__ = ["FabolasSearchCV"]
