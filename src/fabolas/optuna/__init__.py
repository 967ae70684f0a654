"""FABOLAS as a sampler of Optuna: ``optuna.create_study(sampler=FabolasSampler({"rows": (500, 50_000)}))``."""

from fabolas.optuna.sampler import FabolasSampler

__all__ = ["FabolasSampler"]
