"""Batched tree search on the device: PUCT, Gumbel and UCT, from the envs of a simulator. It needs torch."""

from gpuzoo.search.cached import Cached, Evaluate
from gpuzoo.search.results import Result, result_of
from gpuzoo.search.search import Search
from gpuzoo.search.settings import Rule, Settings
from gpuzoo.search.tree import Tree

__all__ = ["Cached", "Evaluate", "Result", "Rule", "Search", "Settings", "Tree", "result_of"]
