"""Sources of a run's accesses, one file each; every source describes itself and its assumptions."""

from typing import TYPE_CHECKING

from gcnsim.lazy import lazily
from gcnsim.sources.batches import plan_of
from gcnsim.sources.expected_batches import degree_law
from gcnsim.sources.model import Declared, Model, resolve_model
from gcnsim.sources.opening import open_source
from gcnsim.sources.profile import ProfileSource
from gcnsim.sources.published_tables import PublishedTables, TableSource, random_parts
from gcnsim.sources.source import RangeEnd, Source, SourceView
from gcnsim.sources.statistics import StatisticsSource
from gcnsim.sources.surrogate import SurrogateSource

if TYPE_CHECKING:
    from gcnsim.sources.graph import GraphSource
    from gcnsim.sources.trace import TraceSource

__getattr__ = lazily(__name__, {"GraphSource": "gcnsim.sources.graph", "TraceSource": "gcnsim.sources.trace"})

__all__ = [
    "Declared",
    "GraphSource",
    "Model",
    "ProfileSource",
    "PublishedTables",
    "RangeEnd",
    "Source",
    "SourceView",
    "StatisticsSource",
    "SurrogateSource",
    "TableSource",
    "TraceSource",
    "degree_law",
    "open_source",
    "plan_of",
    "random_parts",
    "resolve_model",
]
