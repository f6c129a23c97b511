"""The model of a scenario: its widths, otherwise those of the dataset, the file, or stated defaults."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.core.errors import ScenarioError
from gcnsim.scenario import WorkloadSpec
from gcnsim.workload import LayerShape, layer_shapes

MODEL, LAYERS, HIDDEN = "gcn", 4, 256
"""The model for a graph file: the one PSC-GCN trains on its default dataset."""

ATTENDS = "gat"
"""The model with attention heads."""

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
        return f"{self.name}, {len(self.shapes)} layers, widths {widths}{_unlike(self.shapes)}"


def _unlike(shapes: tuple[LayerShape, ...]) -> str:
    """The unusual layers in words (dense or attention); empty if all layers aggregate neighbours."""
    dense = sum(not shape.gathers for shape in shapes[1:])
    first = "" if shapes[0].gathers else ", input aggregated before training"
    first += ", input rows fetched once" if shapes[0].keeps else ""
    return first + (f", the last {dense} dense" if dense else "")


@dataclass(frozen=True, slots=True)
class Declared:
    """The model that a workload's source declares; None for undeclared values."""

    model: str | None = None
    layers: int | None = None
    hidden: int | None = None
    features: int | None = None
    classes: int | None = None


def resolve_model(spec: WorkloadSpec, declared: Declared) -> Model:
    """The model of `spec` on a source that declares `declared`.

    Raises ScenarioError for attention heads in a model without attention, and for static inputs in such a model.
    """
    widths = {"features": spec.features or declared.features, "classes": spec.classes or declared.classes}
    model = spec.model or declared.model or MODEL
    if spec.heads != 1 and model != ATTENDS:
        raise ScenarioError(
            f"workload.heads: {spec.heads} is not allowed; only {ATTENDS} has heads, not {model} (workload.model)"
        )
    if spec.keep_inputs and model != ATTENDS:
        raise ScenarioError(
            f"workload.keep_inputs: true is not allowed with {model} (workload.model), which has workload.preaggregate"
        )
    shapes = layer_shapes(
        model,
        widths["features"] or FEATURES,
        spec.hidden or declared.hidden or HIDDEN,
        spec.layers or declared.layers or LAYERS,
        widths["classes"] or CLASSES,
        preaggregate=spec.preaggregate,
        dense=spec.dense_layers,
        heads=spec.heads,
        heads_joined=spec.heads_joined,
        keep_inputs=spec.keep_inputs,
    )
    return Model(model, shapes, tuple(name for name, width in widths.items() if not width))
