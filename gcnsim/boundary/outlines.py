"""Which graphs have an outline: those too large to draw, and those of which nothing but sizes is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcnsim.workload import DatasetFacts, assumed_ratio, dataset, datasets
from gcnsim.workload.cuts import ANCHOR, WEB

if TYPE_CHECKING:
    from gcnsim.graph.generate import Outline

MOST_PARTS: Final = 1024
"""The most parts that an outline by sizes speaks of."""

ASSUMED: Final = (
    "boundary nodes per inner node by the mean degree and the nodes, as in METIS parts of other graphs, as uneven as "
    "Reddit's ten training parts"
)


def outline_of(facts: DatasetFacts) -> Outline | None:
    """The outline of a dataset: its own, or by its sizes; None of one with a surrogate, or a published boundary."""
    # The generators are imported for these few datasets only: most answers have no need of them.
    from gcnsim.graph.generate import outline, outlines, surrogates

    if facts.name in outlines():
        return outline(facts.name)
    return None if facts.boundary or facts.name in surrogates() else by_sizes(facts)


def outline_named(name: str) -> Outline | None:
    """`outline_of` the dataset `name`; None where there is no such dataset."""
    return outline_of(dataset(name)) if name in datasets() else None


def by_sizes(facts: DatasetFacts) -> Outline:
    """The outline of a graph of which nothing but sizes is known."""
    from gcnsim.graph.generate import Bordering, Outline, outline, outlines

    low, likely, high = assumed_ratio(facts.nodes, facts.entries, ANCHOR, facts.kind)
    unevenness = outline(outlines()[0]).boundary.unevenness
    kind = "one graph of the web and others" if facts.kind == WEB else "eight other graphs"
    source = f"by mean degree and nodes, as in METIS parts of {kind} (studies/cuts.py)"
    return Outline(
        name=facts.name,
        nodes=facts.nodes,
        entries=facts.entries,
        features=facts.features,
        classes=facts.classes,
        parts=(2, MOST_PARTS),
        boundary=Bordering(ANCHOR, low, likely, high, unevenness, source),
        cite=facts.citations,
        assumed=ASSUMED,
    )
