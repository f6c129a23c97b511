"""The data of a run: the whole graph with its features and labels, the owners of its nodes, and one worker's share."""

from __future__ import annotations

from runtime.data.dataset import Dataset, Share, share_of
from runtime.data.load import DatasetCache, load_dataset, partitioning_of

__all__ = ["Dataset", "DatasetCache", "Share", "load_dataset", "partitioning_of", "share_of"]
