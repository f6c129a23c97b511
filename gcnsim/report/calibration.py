"""A calibration record as text."""

from __future__ import annotations

from gcnsim.calibration_record.record import Calibration
from gcnsim.hardware import QUANTITIES
from gcnsim.terminal.tables import aligned


def render_calibration(record: Calibration, path: str) -> str:
    """Figures with what they were fitted to, then how well each law fits; ends with a newline."""
    lines = [
        f"{path}: {record.device} on {record.machine.get('cpu')}, measured in {record.seconds / 60:.1f} minutes",
        "",
    ]
    rows = [
        (f"{part}.{name}", _written(name, figure.value), figure.reference)
        for part, figures in record.figures.items()
        for name, figure in figures.items()
    ]
    rows += [
        (f"graph {graph[:12]}", f"{factor:.2f} x", "sums over neighbours") for graph, factor in record.graphs.items()
    ]
    lines += aligned(rows, left=(True, False, True), indent=2)
    lines += ["", "How far the laws are off (mean, 90th percentile, bias):"]
    for each in record.residuals:
        errors = f"{100 * each.mape:.1f} %, {100 * each.p90:.1f} %, {100 * each.bias:+.1f} %"
        lines.append(f"  {each.term}: {errors} of {each.points} points")
    if record.spread is not None:
        lines += ["", f"Repeated runs differ by {100 * record.spread:.1f} % (standard deviation)"]
    if record.error is not None:
        lines += ["", f"90 % interval of a prediction: +-{100 * record.error:.1f} %"]
    return "\n".join([*lines, ""])


def _written(name: str, value: float) -> str:
    quantity = QUANTITIES[name]
    return f"{value:.4g}" if quantity is None else quantity.exact(float(f"{value:.4g}"))
