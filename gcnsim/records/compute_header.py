"""What the metadata of a file of measured times say: of which graph, model and device, and how exactly each part is
known (docs/files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from gcnsim.core.shapes import Amount, As, Count, OneOrMore, Text, Within
from gcnsim.workload.shapes import DROPOUT_FIRST, EXCHANGE_FIRST, MODELS

FORMAT: Final = "gcnsim.measured_compute/3"

LONGEST_S: Final = 1e7
"""No operation lasts longer: four months."""

FEWEST: Final = 2
"""Iterations of a part: of one, no spread is known."""

Width: TypeAlias = Annotated[int, Within(minimum=1, maximum=10**7)]


class MeasuredGraph(TypedDict):
    """The graph."""

    name: Text
    nodes: OneOrMore
    edges: Count
    features: Width
    classes: Width
    hash: Text
    file: NotRequired[str | None]
    """As it was given; read where a question names no graph."""


class MeasuredPartition(TypedDict):
    """How it was cut."""

    parts: Annotated[int, Within(minimum=1, maximum=4096)]
    algorithm: Text
    hash: Text
    seed: NotRequired[Count]


class MeasuredModel(TypedDict):
    """What was trained."""

    model: Annotated[str, Within(enum=MODELS)]
    layers: Annotated[int, Within(minimum=1, maximum=1000)]
    hidden: Width
    heads: NotRequired[Annotated[int, Within(minimum=1, maximum=1024)]]
    norm: NotRequired[Annotated[str, As(Literal["none", "layer"])]]
    dropout: NotRequired[Annotated[float, Within(minimum=0, maximum=0.999)]]
    dropout_order: NotRequired[Annotated[str, Within(enum=(EXCHANGE_FIRST, DROPOUT_FIRST))]]
    sage_mean: NotRequired[Text]
    bias: NotRequired[bool]
    preaggregate: NotRequired[bool]
    widths: NotRequired[Annotated[list[Width], Within(min_items=2, max_items=1001)]]


class MeasuredDevice(TypedDict):
    """The one device."""

    kind: Annotated[str, As(Literal["cpu", "cuda"])]
    name: Text
    threads: NotRequired[OneOrMore]
    cores: NotRequired[OneOrMore]
    beside: NotRequired[Count]
    """Processes that trained on the other cores meanwhile."""


class SettingHeader(TypedDict):
    """A method with its knobs."""

    setting: Annotated[int, Within(minimum=0, maximum=2**31 - 1)]
    method: Text
    knobs: Mapping[str, float | str | None]


class PartHeader(TypedDict):
    """A part of a setting that was measured."""

    setting: Count
    part: Count
    iterations: Annotated[int, Within(minimum=FEWEST, maximum=10**7)]
    refreshing: list[Count]
    """Iterations that refreshed the sampling probabilities."""
    warmup: Count
    mean_seconds: Annotated[float, Within(minimum=0, maximum=LONGEST_S)]
    outside_seconds: Annotated[float, Within(minimum=0, maximum=LONGEST_S)]
    """Processor time of an iteration that is in no operation; on a GPU time in which its main stream has none and
    waits for none."""
    relative_error: Annotated[float, Within(minimum=0, maximum=1000)]
    """Half the 90 % interval of the mean over it."""
    peak_bytes: Amount | None
    drawn: Mapping[str, Amount]
    """Mean counts of an iteration."""
    inner: NotRequired[Count]
    boundary: NotRequired[Count]


class SkippedHeader(TypedDict):
    """A part of a setting that was not."""

    setting: Count
    part: Count
    reason: Text
    needed_bytes: NotRequired[Amount | None]
    free_bytes: NotRequired[Amount | None]


class Header(TypedDict):
    """The metadata of a file of compute times, as `python -m runtime.measure` writes it under the key `gcnsim`. SI
    units, shares of one."""

    graph: MeasuredGraph
    partition: MeasuredPartition
    model: MeasuredModel
    training: Mapping[str, Any]
    device: Annotated[Mapping[str, Any], As(MeasuredDevice, Any)]
    versions: Mapping[str, Text]
    settings: Annotated[list[SettingHeader], Within(min_items=1, max_items=1000)]
    parts: list[PartHeader]
    skipped: list[SkippedHeader]
