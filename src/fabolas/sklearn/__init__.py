"""Hyperparameter search for scikit-learn's estimators; the only importer of scikit-learn besides the demo."""

from fabolas.sklearn.search import FabolasSearchCV

__all__ = ["FabolasSearchCV"]
