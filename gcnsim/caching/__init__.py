"""Cache rules: how many boundary rows a feature cache holds, and which."""

from gcnsim.caching.policies import (
    DEMAND,
    KINDS,
    RANKINGS,
    REFRESHED,
    ByDegreeRatio,
    ByInclusion,
    cache_policy,
    cached_mask,
    expanded,
    most_connected,
    need_library,
    request_stream,
)
from gcnsim.caching.size import CACHE_SIZES, STATIC_CACHE_SIZES, Cache, CacheSize, capacity, parse_cache

__all__ = [
    "CACHE_SIZES",
    "DEMAND",
    "KINDS",
    "RANKINGS",
    "REFRESHED",
    "STATIC_CACHE_SIZES",
    "ByDegreeRatio",
    "ByInclusion",
    "Cache",
    "CacheSize",
    "cache_policy",
    "cached_mask",
    "capacity",
    "expanded",
    "most_connected",
    "need_library",
    "parse_cache",
    "request_stream",
]
