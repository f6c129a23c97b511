"""Cache rules: how many boundary rows a feature cache holds, and which."""

from gcnsim.caching.comparison import DEMAND, KINDS, RANKINGS, REFRESHED, ByDegreeRatio, expanded
from gcnsim.caching.demand import RequestStream, need_library, request_stream
from gcnsim.caching.policies import (
    AtRandom,
    ByDegree,
    ByInclusion,
    CachePolicy,
    cache_policy,
    cached_mask,
)
from gcnsim.caching.rule import CACHE_SIZES, STATIC_CACHE_SIZES, Cache, parse_cache
from gcnsim.caching.size import CacheSize, capacity
from gcnsim.caching.static import most_connected

__all__ = [
    "CACHE_SIZES",
    "DEMAND",
    "KINDS",
    "RANKINGS",
    "REFRESHED",
    "STATIC_CACHE_SIZES",
    "AtRandom",
    "ByDegree",
    "ByDegreeRatio",
    "ByInclusion",
    "Cache",
    "CachePolicy",
    "CacheSize",
    "RequestStream",
    "cache_policy",
    "cached_mask",
    "capacity",
    "expanded",
    "most_connected",
    "need_library",
    "parse_cache",
    "request_stream",
]
