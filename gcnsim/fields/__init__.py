"""What a field may hold: the rules of scenarios' fields, methods' knobs, options and columns of files."""

from gcnsim.fields.per_layer import Amounts, PerLayer
from gcnsim.fields.rules import (
    Measure,
    Number,
    Rule,
    Truth,
    Word,
    check_fields,
    entry,
    read_fields,
    rule_of,
    shown,
)

__all__ = [
    "Amounts",
    "Measure",
    "Number",
    "PerLayer",
    "Rule",
    "Truth",
    "Word",
    "check_fields",
    "entry",
    "read_fields",
    "rule_of",
    "shown",
]
