"""Cache rules: how many boundary rows a feature cache holds, and which."""

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
    "AtRandom",
    "ByDegree",
    "ByInclusion",
    "CachePolicy",
    "CacheSize",
    "cache_policy",
    "cached_mask",
    "capacity",
    "expected_hit_rate",
]
