"""docs/curves.svg: the time of an iteration against the number of GPUs: `python -m studies.gpu_curves [--keep FILE]`.

Three datasets, three methods, T4 GPUs two a server at 15 Gbit/s and H100 eight a server at 200 Gbit/s, 1 to 64 GPUs.
Printed are the steps: neighbouring counts of which the larger cluster is slower, or the pace of which changes by more
than a third. --keep: a file of times, which are computed once and added.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from gcnsim.api.question import settings
from gcnsim.core.atomic import atomic_write
from gcnsim.simulation import simulate_scenario

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "curves.svg"
GPUS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
COARSE: Final = 24
"""From so many GPUs on, links are shared once per grain (docs/design.md): 0.2 % off, and many times as fast."""
DATASETS: Final = ("reddit", "ogbn-products", "yelp")
METHODS: Final[Mapping[str, dict[str, Any]]] = {
    "full-graph": {},
    "bns-gcn": {"rate": 0.1},
    "psc-gcn": {"tau": 2, "epsilon": 0.1},
}
MACHINES: Final[Mapping[str, dict[str, Any]]] = {
    "T4, 2 a server, 15 Gbit/s": {"device": "t4", "gpus_per_server": 2, "bandwidth": "15Gbps"},
    "H100, 8 a server, 200 Gbit/s": {"device": "h100", "gpus_per_server": 8, "bandwidth": "200Gbps"},
}
COLOURS: Final = ("#2563EB", "#D97706", "#059669")
ITERATIONS: Final = 20
_WIDTH, _HEIGHT, _LEFT, _TOP, _ACROSS, _DOWN = 280, 190, 66, 66, 66, 56
_STYLE: Final = """\
<style>
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1F2933 }
.paper { fill: #FFFFFF } .grid { stroke: #C9D1DA; stroke-width: 0.7 } .line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #E6EAF0 } .paper { fill: #12161C } .grid { stroke: #3A4450 } }
</style>"""

Curves = dict[str, dict[str, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute, print the steps, draw; return the exit code."""
    parser = argparse.ArgumentParser(description="Time of an iteration against GPUs.")
    parser.add_argument("--keep", type=Path)
    kept = parser.parse_args(arguments).keep
    curves: Curves = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}
    for dataset in DATASETS:
        for gpus in GPUS:
            for machine in MACHINES:
                for method in METHODS:
                    curve = curves.setdefault(f"{dataset}, {method}, {machine}", {})
                    if str(gpus) not in curve:
                        curve[str(gpus)] = seconds(dataset, method, machine, gpus)
            if kept:
                with atomic_write(kept, text=True) as file:
                    json.dump(curves, file, indent=1)
    sys.stdout.write("\n".join(steps(curves)) + "\n")
    with atomic_write(PICTURE, text=True) as file:
        file.write(drawn(curves))
    return 0


def seconds(dataset: str, method: str, machine: str, gpus: int) -> float:
    """Seconds of an iteration."""
    question = MACHINES[machine] | METHODS[method]
    if gpus < question["gpus_per_server"]:
        question |= {"gpus_per_server": gpus}
    if gpus >= COARSE:
        question |= {"fidelity": "coarse"}
    (scenario,) = settings(dataset=dataset, method=method, gpus=gpus, iterations=ITERATIONS, **question)
    return simulate_scenario(scenario).metrics.iteration_s


def steps(curves: Curves) -> list[str]:
    """Neighbours on a curve of which the larger cluster is slower, or where the slope breaks."""
    lines = []
    for name, curve in curves.items():
        counts = sorted(map(int, curve))
        for before, after in pairwise(counts):
            ratio = curve[str(after)] / curve[str(before)]
            if ratio > 1.03 or ratio < 0.6 * before / after:
                lines.append(f"{name}: {before} -> {after} GPUs: {ratio - 1.0:+.0%}")
    return lines


def drawn(curves: Curves) -> str:
    """The picture: a panel for each dataset and machine, a line for each method, both axes logarithmic."""
    across, down = len(DATASETS) * (_WIDTH + _ACROSS) + _LEFT, len(MACHINES) * (_HEIGHT + _DOWN) + _TOP
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" role="img" '
        'aria-label="Time of one iteration against the number of GPUs">',
        _STYLE,
        f'<rect class="paper" width="{across}" height="{down}" rx="8"/>',
    ]
    for at, (method, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
        knobs = "".join(f", {name} {value:g}" for name, value in METHODS[method].items())
        pieces.append(f'<path class="line" stroke="{colour}" d="M{_LEFT + 200 * at} 22h26"/>')
        pieces.append(f'<text x="{_LEFT + 32 + 200 * at}" y="26">{escape(method + knobs)}</text>')
    for row, machine in enumerate(MACHINES):
        for column, dataset in enumerate(DATASETS):
            own = {method: curves[f"{dataset}, {method}, {machine}"] for method in METHODS}
            x, y = _LEFT + column * (_WIDTH + _ACROSS), _TOP + row * (_HEIGHT + _DOWN)
            pieces.append(f'<text x="{x}" y="{y - 8}">{escape(f"{dataset}: {machine}")}</text>')
            pieces += _panel(own, x, y)
    return "\n".join([*pieces, "</svg>"]) + "\n"


def _panel(curves: Mapping[str, Mapping[str, float]], x: int, y: int) -> list[str]:
    times = [1e3 * value for curve in curves.values() for value in curve.values()]
    low, high = math.log10(min(times)) - 0.05, math.log10(max(times)) + 0.05
    most = math.log2(max(GPUS))

    def across(gpus: float) -> float:
        return x + _WIDTH * math.log2(gpus) / most

    def up(value: float) -> float:
        return y + _HEIGHT * (high - math.log10(value)) / (high - low)

    pieces = []
    for gpus in (1, 2, 4, 8, 16, 32, 64):
        pieces.append(f'<path class="grid" d="M{across(gpus):.1f} {y}v{_HEIGHT}"/>')
        pieces.append(f'<text x="{across(gpus):.1f}" y="{y + _HEIGHT + 15}" text-anchor="middle">{gpus}</text>')
    for power in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**power
            if low <= math.log10(value) <= high:
                pieces.append(f'<path class="grid" d="M{x} {up(value):.1f}h{_WIDTH}"/>')
                pieces.append(f'<text x="{x - 5}" y="{up(value) + 4:.1f}" text-anchor="end">{value:g} ms</text>')
    for (_, curve), colour in zip(curves.items(), COLOURS, strict=True):
        points = " ".join(f"{across(int(gpus)):.1f},{up(1e3 * curve[gpus]):.1f}" for gpus in sorted(curve, key=int))
        pieces.append(f'<polyline class="line" stroke="{colour}" points="{points}"/>')
    return pieces


if __name__ == "__main__":
    sys.exit(main())
