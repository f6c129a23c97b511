"""The allowed values of fields: rules for scenarios, methods' knobs, options and columns of files."""

from gcnsim.fields.per_layer import PerLayer, PerLayerValues
from gcnsim.fields.rules import (
    Choice,
    Count,
    FieldRule,
    Flag,
    Named,
    Number,
    QuantityRange,
    Share,
    check_fields,
    denied,
    entry,
    read_fields,
    rule_of,
    shown,
    unknown_schema,
)

__all__ = [
    "Choice",
    "Count",
    "FieldRule",
    "Flag",
    "Named",
    "Number",
    "PerLayer",
    "PerLayerValues",
    "QuantityRange",
    "Share",
    "check_fields",
    "denied",
    "entry",
    "read_fields",
    "rule_of",
    "shown",
    "unknown_schema",
]
