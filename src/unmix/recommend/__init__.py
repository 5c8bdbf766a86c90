"""Recommenders: factors of users and items, with how sure a prediction is; baselines, and how good all of them are."""

from unmix.recommend.content import ContentRidge
from unmix.recommend.evaluation import Scores, evaluate, folds, ranking, split
from unmix.recommend.neighbours import Neighbours

__all__ = ["ContentRidge", "Neighbours", "Scores", "evaluate", "folds", "ranking", "split"]
