"""The table of benchmarks/README.md and its picture, from what the benchmarks wrote to out/.

    python -m benchmarks.figures     after `make bench` or a single benchmark

Figures with a limit are kept in benchmarks/figures.json, each beside the one that it replaces on the same processor. A
figure that was not measured anew stays as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.measuring import OUT, Figure

HERE: Final = Path(__file__).resolve().parent
KEPT, PAGE, PICTURE = HERE / "figures.json", HERE / "README.md", HERE.parent / "docs" / "speed.svg"

BEGIN, END = "<!-- begin of the generated table -->", "<!-- end of the generated table -->"

BUSY: Final = 2.5
"""Load in the last minute that a benchmark's own processes on two cores do not reach."""

Row = dict[str, Any]


def main() -> int:
    """Take over what out/ has; write the file, the table and the picture."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(OUT.glob("*.json"))]
    rows = merged(json.loads(KEPT.read_text(encoding="utf-8")), [each for each in found if "date" in each])
    KEPT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), table(rows)), encoding="utf-8")
    draw(rows, PICTURE)
    return 0


def merged(rows: Iterable[Row], reports: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows with the figures of `reports` in place of earlier ones; not those of a benchmark that is gone."""
    known = {path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py")} - {"before"}
    place = {(row["benchmark"], row["figure"], row["cpu"]): row for row in rows if row["benchmark"] in known}
    for report in (report for report in reports if report["benchmark"] in known):
        machine = report["machine"]
        for figure in (figure for figure in report["figures"] if figure["limit"]):
            key = (report["benchmark"], figure["name"], machine["cpu"])
            old = place.get(key)
            new = {
                **dict(zip(("benchmark", "figure", "cpu"), key, strict=True)),
                **{name: figure[name] for name in ("value", "unit", "limit")},
                "date": report["date"],
                "load": machine["load_1min"],
            }
            if old is None or old["value"] != new["value"]:
                place[key] = new | {"before": old and old["value"]}
    return sorted(place.values(), key=lambda row: row["benchmark"])


def _kept(row: Row) -> bool:
    return Figure(row["figure"], row["value"], row["unit"], row["limit"]).kept


def table(rows: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = [
        "| benchmark | figure | measured | limit | over the one before | processor, date |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        limit = f"{row['limit']}" if _kept(row) else f"{row['limit']}: missed"
        ratio = f"{row['value'] / row['before']:.2f}" if row["before"] else ""
        busy = ", busy" if row["load"] > BUSY else ""
        lines.append(
            f"| {row['benchmark']} | {row['figure']} | {_number(row['value'])} {row['unit']}".rstrip()
            + f" | {limit} | {ratio} | {row['cpu'].replace('(R)', '')}, {row['date']}{busy} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def replaced(page: str, content: str) -> str:
    """The page with `content` between its two marks. Raises ValueError where it has not both."""
    head, _, rest = page.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name}: no {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{content}\n\n{END}{tail}"


def draw(rows: Sequence[Row], path: Path) -> None:
    """How much of its limit each figure takes, as bars on a logarithmic axis: an SVG file."""
    import matplotlib as mpl
    from matplotlib import figure as drawing

    mpl.rcParams.update({"svg.hashsalt": "gcnsim", "svg.fonttype": "none"})
    shown = [row for row in rows if row["value"] > 0 and float(row["limit"].split()[1]) > 0]
    shares = [row["value"] / float(row["limit"].split()[1]) for row in shown]
    shares = [share if row["limit"].startswith("<=") else 1 / share for row, share in zip(shown, shares, strict=True)]
    canvas = drawing.Figure(figsize=(10, 1 + 0.2 * len(shown)), layout="constrained")
    axes = canvas.subplots()
    colours = ["tab:blue" if _kept(row) else "tab:red" for row in shown]
    axes.barh([f"{row['benchmark']}: {row['figure']}" for row in shown], shares, color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("share of the limit (red: missed)")
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.tick_params(labelsize=7)
    canvas.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
