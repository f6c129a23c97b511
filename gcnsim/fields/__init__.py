"""What a field may hold: the rules of scenarios' fields, methods' knobs, options and columns of files."""

from gcnsim.fields.per_layer import Amounts, PerLayer
from gcnsim.fields.rules import (
    Count,
    Measure,
    Named,
    Number,
    Rule,
    Share,
    Truth,
    Word,
    check_fields,
    denied,
    entry,
    read_fields,
    rule_of,
    shown,
    unknown_schema,
)

__all__ = [
    "Amounts",
    "Count",
    "Measure",
    "Named",
    "Number",
    "PerLayer",
    "Rule",
    "Share",
    "Truth",
    "Word",
    "check_fields",
    "denied",
    "entry",
    "read_fields",
    "rule_of",
    "shown",
    "unknown_schema",
]
