"""`python -m studies.picture`: README's picture, docs/answer.svg: where the time of README's first question goes.

Plain SVG, written by hand so that the same answer gives the same bytes; dark where the reader's system is.
`make examples` writes it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import gcnsim
from gcnsim.core.atomic import atomic_write
from gcnsim.report.palette import COMPUTE, EXPOSED, OTHER

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "answer.svg"
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 900, 310, 150, 44, 92
_PARTS: Final = (("compute_s", "compute", COMPUTE), ("exposed_comm_s", "waiting for the network", EXPOSED))
_STYLE: Final = """\
<style>
text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1F2933 }
.head { font-size: 18px; font-weight: 600 } .small { font-size: 13px; fill: #52606D } .range { stroke: #1F2933 }
.paper { fill: #FFFFFF }
@media (prefers-color-scheme: dark) {
text { fill: #E6EAF0 } .small { fill: #AAB4C0 } .range { stroke: #E6EAF0 } .paper { fill: #12161C }
}
</style>"""


def drawn(rows: Sequence[Any]) -> str:
    """The picture of an answer's rows: a bar for each, its parts, its 90 % interval, how much faster it is."""
    longest = max(row["iteration_s_high"] for row in rows)
    height = _TOP + _ROW * len(rows) + 34
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'aria-label="Time of one training iteration by method, as the table below has it">',
        _STYLE,
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
        '<text class="head" x="24" y="36">One training iteration on six T4 in three servers, 15 Gbit/s</text>',
        *_legend(),
    ]
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    for at, row in enumerate(rows):
        pieces += _bar(row, _TOP + _ROW * at, scale)
    text = "Predicted, uncalibrated. Lines: 90 % intervals. Filled: what an iteration adds up to."
    pieces += [f'<text class="small" x="24" y="{height - 14}">{text}</text>', "</svg>"]
    return "\n".join(pieces) + "\n"


def _legend() -> list[str]:
    pieces, x = [], 24
    for _, name, colour in (*_PARTS, ("", "other", OTHER)):
        pieces.append(f'<rect x="{x}" y="54" width="14" height="14" fill="{colour}"/>')
        pieces.append(f'<text class="small" x="{x + 20}" y="66">{name}</text>')
        x += 48 + 7 * len(name)
    return pieces


def _bar(row: Any, y: int, scale: float) -> list[str]:
    name = ", ".join([row["method"], *_knobs(row)])
    lines = [f'<text x="{_LEFT - 12}" y="{y + 20}" text-anchor="end">{escape(name)}</text>']
    x, other = float(_LEFT), row["iteration_s"]
    for key, _, colour in _PARTS:
        lines.append(f'<rect x="{x:.1f}" y="{y}" width="{row[key] * scale:.1f}" height="26" fill="{colour}"/>')
        x += row[key] * scale
        other -= row[key]
    lines.append(f'<rect x="{x:.1f}" y="{y}" width="{max(other, 0) * scale:.1f}" height="26" fill="{OTHER}"/>')
    low, high = (_LEFT + row[f"iteration_s_{end}"] * scale for end in ("low", "high"))
    ends = f"M{low:.1f} {y + 29}v6M{high:.1f} {y + 29}v6"
    lines.append(f'<path class="range" fill="none" d="M{low:.1f} {y + 32}H{high:.1f}{ends}"/>')
    speed = f"{1000 * row['iteration_s']:,.0f} ms, {row['speedup_vs_full_graph']:.1f}x"
    lines.append(f'<text x="{max(high, x) + 10:.1f}" y="{y + 20}">{speed}</text>')
    return lines


def _knobs(row: Any) -> list[str]:
    """What is not at its neutral value, in a few letters."""
    found = [f"tau {row['tau']}"] if row["tau"] else []
    found += [f"eps {row['epsilon']:g}"] if row["epsilon"] < 1.0 else []
    found += [f"rate {row['rate']:g}"] if row["rate"] < 1.0 else []
    return found + ([f"cache {row['cache_fraction']:.0%}"] if row["cache_fraction"] else [])


def picture(answer: gcnsim.Answer) -> str:
    """The answer to README's first question, drawn: what is recommended, then the rows that were asked for."""
    rows = sorted(answer.results, key=lambda row: float(row["iteration_s"]))
    return drawn([answer.recommendation["row"], *rows] if answer.recommendation["in_results"] is None else rows)


def main() -> int:
    """Write the picture; the exit code."""
    with atomic_write(PICTURE, text=True) as file:
        file.write(picture(gcnsim.what_if(gpus=6, bandwidth="15Gbps")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
