"""Cache rules: how many boundary rows a feature cache holds, and which."""

from gcnsim.caching.demand import RequestStream, need_library, request_stream
from gcnsim.caching.policies import (
    DEMAND,
    KINDS,
    RANKINGS,
    REFRESHED,
    AtRandom,
    ByDegree,
    ByDegreeRatio,
    ByInclusion,
    CachePolicy,
    cache_policy,
    cached_mask,
    expanded,
    most_connected,
)
from gcnsim.caching.size import CACHE_SIZES, STATIC_CACHE_SIZES, Cache, CacheSize, capacity, parse_cache

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
