"""Ask and tell: the one place where a strategy meets a clock, a seed and a storage."""

from fabolas.study.study import Study

__all__ = ["Study"]
