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
    expected_hit_rate,
)
from gcnsim.caching.size import CacheSize, capacity

__all__ = [
    "DEMAND",
    "KINDS",
    "RANKINGS",
    "REFRESHED",
    "AtRandom",
    "ByDegree",
    "ByDegreeRatio",
    "ByInclusion",
    "CachePolicy",
    "CacheSize",
    "RequestStream",
    "cache_policy",
    "cached_mask",
    "capacity",
    "expanded",
    "expected_hit_rate",
    "need_library",
    "request_stream",
]
