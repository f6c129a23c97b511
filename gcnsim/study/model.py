"""Which model a scenario trains: its own widths, else those of the dataset, else the file's, else stated defaults."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.graph import Graph
from gcnsim.scenario import WorkloadSpec
from gcnsim.workload import LayerShape, dataset, layer_shapes

MODEL, LAYERS, HIDDEN = "gcn", 4, 256
"""The model for a graph file: the one PSC-GCN trains on its default dataset."""

FEATURES, CLASSES = 128, 16
"""Widths assumed for a graph file that declares none."""


@dataclass(frozen=True, slots=True)
class Model:
    """The resolved model. assumed: the names of widths that neither scenario nor data gave."""

    name: str
    shapes: tuple[LayerShape, ...]
    assumed: tuple[str, ...]

    @property
    def features(self) -> int:
        """Width of the input rows."""
        return self.shapes[0].d_in

    def __str__(self) -> str:
        """One line, e.g. `gcn, 4 layers, widths 602-256-256-256-41`."""
        widths = "-".join(str(width) for width in (self.features, *(shape.d_out for shape in self.shapes)))
        return f"{self.name}, {len(self.shapes)} layers, widths {widths}"


def resolve_model(spec: WorkloadSpec, graph: Graph | None) -> Model:
    """The model of `spec` on `graph` (None: on the published dataset)."""
    if graph is None:
        facts = dataset(spec.dataset or "")
        known = (facts.model, facts.layers, facts.hidden, facts.features, facts.classes)
        assumed: tuple[str, ...] = ()
    else:
        known = (MODEL, LAYERS, HIDDEN, graph.features or FEATURES, graph.classes or CLASSES)
        missing = {"features": graph.features or spec.features, "classes": graph.classes or spec.classes}
        assumed = tuple(name for name, width in missing.items() if not width)
    model, layers, hidden, features, classes = known
    shapes = layer_shapes(
        spec.model or model,
        spec.features or features,
        spec.hidden or hidden,
        spec.layers or layers,
        spec.classes or classes,
    )
    return Model(spec.model or model, shapes, assumed)
