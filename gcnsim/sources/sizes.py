"""Source of a graph of which nothing but sizes is known: answered by its outline."""

from __future__ import annotations

from gcnsim.errors import ScenarioError
from gcnsim.scenario import WorkloadSpec
from gcnsim.sources.batches import TRAIN
from gcnsim.sources.model import CLASSES, FEATURES, HIDDEN, LAYERS, MODEL, Declared
from gcnsim.sources.surrogate import SurrogateSource
from gcnsim.workload import DatasetFacts


class SizesSource(SurrogateSource):
    """A graph of so many nodes and edges that nobody has at hand."""

    def __init__(self, spec: WorkloadSpec, gpus: int) -> None:
        """gpus: workers asked for. Raises ScenarioError for more of them than nodes."""
        assert spec.nodes is not None
        assert spec.edges is not None
        if gpus > spec.nodes:
            raise ScenarioError(f"cluster.gpus: {gpus} is not allowed; workload.nodes is {spec.nodes}")
        facts = DatasetFacts(
            name=f"{short(spec.nodes)} nodes, {short(spec.edges)} edges",
            nodes=spec.nodes,
            entries=2 * spec.edges,
            features=spec.features or FEATURES,
            classes=spec.classes or CLASSES,
            model=MODEL,
            layers=LAYERS,
            hidden=HIDDEN,
            boundary=(),
            citations=(),
            train=TRAIN,
        )
        super().__init__(facts)
        # What the scenario leaves open is assumed, not the data's own.
        self.declared = self.published.declared = Declared()


def short(count: int) -> str:
    """A count in few characters: at most three digits and its thousands.

    >>> short(950), short(2_500_000), short(117_185_083)
    ('950', '2.5M', '117M')
    """
    for power, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= power:
            return f"{count / power:.3g}{unit}" if count < 999.5 * power else f"{count / power:.0f}{unit}"
    return str(count)
