"""Training: what happens from epoch to epoch."""

from .learner import Learner, Objective, Record, Snapshot, best_start
from .train import Plan, train

__all__ = ["Learner", "Objective", "Plan", "Record", "Snapshot", "best_start", "train"]
