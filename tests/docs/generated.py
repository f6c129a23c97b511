"""The tables in docs/ that the code writes: between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcnsim.graph.generate import FitRow

_GENERATED = re.compile(r"<!-- generated: (.+?) -->\n(.*?)<!-- end -->", re.DOTALL)


def generated(text: str) -> str:
    """The document with its generated tables written anew."""
    return _GENERATED.sub(lambda found: f"<!-- generated: {found[1]} -->\n{TABLES[found[1]]()}\n<!-- end -->", text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def catalogued(allowed: str) -> str:
    """The allowed values, with the command that lists them in place of all names of a kind in the catalogue."""
    from gcnsim.cli.catalog import names
    from gcnsim.hardware import links_between, links_within

    for kind, known in (*names().items(), ("links", links_between()), ("links", links_within())):
        allowed = allowed.replace(", ".join(sorted(known)), f"`gcnsim catalog list {kind}`")
    return allowed


def _scenario_fields() -> str:
    from gcnsim.scenario.load import describe_schema

    rows = [
        (f"`{path}`", f"`{unit}`" if unit else "", catalogued(allowed), f"`{default}`", doc)
        for path, unit, allowed, default, doc in describe_schema()
    ]
    return table(("field", "unit", "allowed", "default", "what it is"), rows)


def _knobs() -> str:
    from gcnsim.methods import SHARED_KNOBS, every_method

    rows = []
    for name, kind in every_method().items():
        stands = {knob: getattr(kind(), knob) for knob in SHARED_KNOBS if not kind.has(knob)}
        fixed = ", ".join(f"{knob} {0 if knob == 'cache' else format(value, 'g')}" for knob, value in stands.items())
        rows.append((f"`{name}`", ", ".join(f"`{knob.name}`" for knob in kind.knobs()) or "none", fixed or "nothing"))
    return table(("method", "simulator knobs", "fixed"), rows)


def _columns() -> str:
    from gcnsim.results import COLUMNS

    rows = [(f"`{key}`", column.says) for key, column in COLUMNS.items()]
    return table(("number", "meaning"), rows)


def _surrogates() -> str:
    from gcnsim.graph.generate import surrogate_facts, surrogates

    rows = []
    for facts in map(surrogate_facts, surrogates()):
        size = (f"`{facts.name}`", f"{facts.model.nodes:,}", f"{2 * facts.model.edges:,}")
        if not facts.rows:
            rows.append((*size, "", "", "not fitted", "", "", "", "", "", ""))
        for row in facts.rows:
            blind = "" if row.left_out is None else f"{row.left_out:,.0f} ({row.left_out / row.published - 1.0:+.1%})"
            counts = (str(row.parts), f"{row.inner:,.0f}", *_beside(row), blind)
            spread = str(row.seeds) if row.spread is None else f"{row.seeds}, ± {row.spread:.1%}"
            share = row.cross_fraction * facts.model.nodes / (row.surrogate * row.parts)
            rows.append((*size, *counts, spread, f"{row.cross_fraction:.2f}", f"{share:.2f}", f"{row.scale:g}"))
    head = ("dataset", "nodes", "entries", "parts", "inner", "boundary, published", "surrogate", "left out")
    return table((*head, "seeds", "cross fraction", "cross edges / degree", "scale"), rows)


def _beside(found: FitRow) -> tuple[str, str]:
    return f"{found.published:,.0f}", f"{found.surrogate:,.0f} ({found.residual:+.1%})"


def _cross_edges() -> str:
    from gcnsim.graph.generate import surrogate_facts, surrogates

    found = {name: surrogate_facts(name).cross_edges for name in surrogates()}
    rows = [(f"`{name}`", f"{it.low:g}", f"{it.likely:g}", f"{it.high:g}", it.source) for name, it in found.items()]
    return table(("dataset", "low", "likely", "high", "source"), rows)


def _partition_spread() -> str:
    from gcnsim.core.yaml_files import read_yaml
    from gcnsim.graph.describe import FIGURES, FILE, partition_scatter

    rows = []
    for name, entry in read_yaml(FILE)["datasets"].items():
        cut = f"{entry['seeds']} seeds, {100 * entry['scale']:g} % of the nodes"
        for row in entry["rows"]:
            low, high = partition_scatter(name, row["parts"]).factors("boundary_largest")
            cells = (f"{100 * row[figure]:.1f} %" for figure in FIGURES)
            rows.append((f"`{name}`", str(row["parts"]), cut, *cells, f"{low:.2f} to {high:.2f}"))
        cells = (f"{100 * entry['neighbours'][figure]:.1f} %" for figure in FIGURES)
        rows.append((f"`{name}`", "between", "neighbouring profiles", *cells, ""))
    head = ("dataset", "parts", "measured", "mean boundary", "largest boundary", "cross entries", "largest entries")
    return table((*head, "interval of the largest boundary"), rows)


def _given_rows() -> list[Mapping[str, Any]]:
    from gcnsim.core.yaml_files import read_yaml
    from gcnsim.evidence.like_questions import ROWS

    found: list[Mapping[str, Any]] = read_yaml(ROWS)
    return found


LARGE = "32 or more workers"


def _kind(row: Mapping[str, Any]) -> str:
    """The first that applies."""
    server = {"full-graph": "full-graph", "pipegcn": "PipeGCN", "bns-gcn": "BNS-GCN"}.get(row["method"], "CAGNET, ROC")
    kinds = {
        "mini-batches": row["minibatch"],
        "attention": row["attention"],
        LARGE: row["gpus"] >= 32,
        "several servers": row["servers"] > 1,
    }
    return next((kind for kind, applies in kinds.items() if applies), f"one server: {server}")


KINDS = (
    *(f"one server: {method}" for method in ("full-graph", "PipeGCN", "BNS-GCN", "CAGNET, ROC")),
    "several servers",
    LARGE,
    "attention",
    "mini-batches",
)


def _validity() -> str:
    kinds = {kind: [row for row in _given_rows() if _kind(row) == kind] for kind in KINDS} | {"all": _given_rows()}
    assert sum(map(len, kinds.values())) == 2 * len(_given_rows()), "a row of no kind"
    cells = [(kind, *(_off(rows, which) for which in ("", "calibrated_"))) for kind, rows in kinds.items()]
    return table(("measured on GPUs", "without fitted figures", "with figures fitted to other published tables"), cells)


def _off(rows: Sequence[Mapping[str, Any]], which: str) -> str:
    known = [row for row in rows if row[f"{which}error"] is not None]
    if not known:
        return "no rows"
    count, error = _figures(known, which)
    return f"{count}: {error} off"


def _figures(rows: Sequence[Mapping[str, Any]], which: str = "") -> tuple[str, str]:
    """How many rows, and their median error. All were known when formulas were chosen: they judge no range."""
    error = statistics.median(abs(row[f"{which}error"]) for row in rows)
    return f"{len(rows)} row{'s' * (len(rows) > 1)}", f"{100 * error:.0f} %"


def _gpus() -> str:
    rows, error = _figures(_given_rows())
    many, far = _figures([row for row in _given_rows() if _kind(row) == LARGE])
    return (
        "Our own runs used one H200 and one H100. There, training gives the same results as on CPUs; "
        "on the H100, predictions of GCN and GraphSAGE for one worker are off by 4 % on average with measured compute "
        "and by 14 % with a calibration; from datasheets, the median error is 25 %. Our attention takes 1.3 to 4.6 "
        "times as long as predicted, unless measured ([details](docs/validation.md#one-gpu)). "
        "We have not trained on several GPUs or servers of them. "
        f"Against {rows.removesuffix(' rows')} GPU timings that others published, "
        f"the median error is {error}. We knew these timings when we chose formulas and values, so expect larger "
        f"errors elsewhere: times kept back from an earlier version were 30 % off. With {LARGE} "
        f"({many.split()[0]} timings), the median error is {far} ([how far to trust the numbers](docs/trust.md))."
    )


def _toy(name: str, language: str) -> str:
    text = (Path(__file__).parents[1] / "toy" / name).read_text(encoding="utf-8").strip()
    return f"`{name}`:\n\n```{language}\n{text}\n```"


TABLES: dict[str, Callable[[], str]] = {
    "toy method": lambda: _toy("local_gcn.py", "python"),
    "toy package": lambda: _toy("pyproject.toml", "toml"),
    "scenario fields": _scenario_fields,
    "knobs": _knobs,
    "numbers": _columns,
    "surrogates": _surrogates,
    "surrogates' cross edges": _cross_edges,
    "partition spread": _partition_spread,
    "validity": _validity,
    "runs on GPUs": _gpus,
}
