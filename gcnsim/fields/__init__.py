"""What a field may hold: the rules of scenario fields and of methods' knobs."""

from gcnsim.fields.per_layer import Amounts, PerLayer
from gcnsim.fields.rules import (
    CACHE_SIZES,
    STATIC_CACHE_SIZES,
    Cache,
    Measure,
    Number,
    Rule,
    Truth,
    Word,
    check_fields,
    entry,
    parse_cache,
    read_fields,
    rule_of,
    shown,
)

__all__ = [
    "CACHE_SIZES",
    "STATIC_CACHE_SIZES",
    "Amounts",
    "Cache",
    "Measure",
    "Number",
    "PerLayer",
    "Rule",
    "Truth",
    "Word",
    "check_fields",
    "entry",
    "parse_cache",
    "read_fields",
    "rule_of",
    "shown",
]
