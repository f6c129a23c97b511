"""Figures in the prose of pages for users come from somewhere: an example of the page, a page it links to, or ALLOWED.

A figure is a number with a unit outside code. It is backed by the same quantity in a block or a generated part of its
page (examples and generated parts have tests of their own), or by a page to which its paragraph links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.docs.examples import ROOT
from tests.docs.test_prose import prose
from tests.docs.test_sizes import EVERY, INSIDE

PAGES: Final = (ROOT / "README.md", *(ROOT / "docs" / name for name in EVERY if name not in INSIDE))

UNITS: Final = {
    "%": ("share", 0.01), "times": ("times", 1.0), "x": ("times", 1.0),
    "ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0), "second": ("time", 1.0),
    "min": ("time", 60.0), "minute": ("time", 60.0), "h": ("time", 3600.0), "hour": ("time", 3600.0),
    "B": ("size", 1.0), "byte": ("size", 1.0), "KB": ("size", 1e3), "MB": ("size", 1e6), "GB": ("size", 1e9),
    "TB": ("size", 1e12), "KiB": ("size", 2.0**10), "MiB": ("size", 2.0**20), "GiB": ("size", 2.0**30),
    "USD": ("money", 1.0), "Mbit/s": ("rate", 1e6), "Gbit/s": ("rate", 1e9), "Mbps": ("rate", 1e6),
    "Gbps": ("rate", 1e9), "GB/s": ("rate", 8e9),
}  # fmt: skip
"""What each unit measures, and how much of it."""

ALLOWED: Final = {
    ("", "90 % interval"): "the level of every interval, a definition",
    ("assumptions.md", "5 % to the 95 % quantile"): "the same level",
    ("", "within 3 % of"): "NEAR of gcnsim.planning.recommend: settings about as fast",
    ("assumptions.md", "is added; 40 %"): "LAW_ERROR and FAR_LAW_ERROR of gcnsim.scenario.machine",
    ("assumptions.md", "one adapter (400 Gbit/s)"): "the fastest adapter of the catalogue, infiniband-ndr",
    ("assumptions.md", "two a server, 15 Gbit/s"): "the published cluster of the platform psc-gcn-t4",
    ("cli.md", "each with four T4s, 48 vCPUs and 50 Gbit/s"): "the host g4dn.12xlarge of the catalogue",
    ("dashboard.md", "at most 64 MiB"): "the limit of an upload in gcnsim.dashboard.guard",
    ("emulation.md", ""): "constants of the emulation, which run.json records",
    ("faults.md", ""): "a table of simulations and one of measurements, each with its command",
    ("files.md", "YAML file may have at most 1 MiB"): "the limit of gcnsim.core.yaml_files",
    ("files.md", "A 2 x 2 table"): "a shape",
    ("files.md", "60 %, 20 %, 20 %"): "the rule of that dataset's own loader",
    ("files.md", "at most 8 GiB of text"): "the limit of the reader of profiler traces",
    ("files.md", "overlaps the next of its stream by 50 us"): "the same reader's tolerance",
    ("glossary.md", "4 bytes per value"): "the size of a float32",
    ("guide_calibrate.md", "30 minutes"): "the default of --minutes",
    ("memory.md", ""): "sizes of a float32, and errors that tests/runtime/train/test_memory.py bounds",
    ("methods.md", "after a batch and 1 GB"): "the reserve of PaGraph's own code",
    ("questions.md", "fit into 16 GB"): "the reader's question",
    ("recommend.md", "fewer than 95 % of the draws"): "SURE of gcnsim.planning.capacity_search",
    ("scale.md", ""): "measurements with command, machine and load on the page",
    ("training.md", "within 10 s; when it hangs"): "what tests/runtime/launch checks, and the default of --timeout",
    ("trust.md", "were 30 % off at the median, 72 % of them inside"): "times that the package does not hold",
}
"""Figures that nothing on the page prints, and why they stay: by page (empty: any) and words (empty: all)."""

_UNIT: Final = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_FIGURE: Final = re.compile(rf"(?<![\w.,/-])(\d[\d,]*(?:\.\d+)?)[ \u00a0-]?({_UNIT})(?:s\b)?(?![\w/])")
_LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]*)[^)]*\)")
_CODE: Final = re.compile(r"`[^`]*`")


class Quantity(NamedTuple):
    """A figure in its base unit, as it is written, with a few words on either side."""

    kind: str
    value: float
    context: str


def quantities(text: str) -> Iterator[Quantity]:
    """Every number with a unit of a text."""
    for found in _FIGURE.finditer(text):
        kind, size = UNITS[found[2]]
        context = text[max(0, found.start() - 40) : found.end() + 40]
        yield Quantity(kind, float(found[1].replace(",", "")) * size, " ".join(context.split()))


def backed(one: Quantity, others: list[Quantity]) -> bool:
    """Whether one of the others is the same quantity, as far as it is written."""
    return any(one.kind == other.kind and math.isclose(one.value, other.value, rel_tol=0.01) for other in others)


def unbacked(page: Path) -> list[str]:
    """The figures of a page's prose that nothing backs, with the words around them."""
    text = page.read_text(encoding="utf-8")
    message = prose(text)
    shown = list(quantities(" ".join(_pieces_without(text, message)) + " ".join(_CODE.findall(message))))
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*|] ?)", message):
        cited = [(page.parent / link).resolve() for link in _LINK.findall(paragraph) if link]
        known = shown + [
            quantity for path in cited if path.suffix == ".md" for quantity in quantities(path.read_text("utf-8"))
        ]
        found += [quantity.context for quantity in quantities(_CODE.sub("X", paragraph)) if not backed(quantity, known)]
    return found


def _pieces_without(text: str, message: str) -> list[str]:
    """The lines of a page that are not prose: its blocks and generated parts."""
    lines = set(message.splitlines())
    return [line for line in text.splitlines() if line not in lines]


def _excused(page: Path, context: str) -> list[tuple[str, str]]:
    """The exceptions for a figure of a page."""
    return [(name, words) for name, words in ALLOWED if name in ("", page.name) and words in context]


def test_figures_of_prose_are_backed_and_every_exception_is_needed() -> None:
    found = {(page.name, text): _excused(page, text) for page in PAGES for text in unbacked(page)}
    assert [place for place, excuses in found.items() if not excuses] == []
    assert set(ALLOWED) - {excuse for excuses in found.values() for excuse in excuses} == set()


def test_a_figure_that_nothing_backs_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("It took 7 minutes.\n")
    page = tmp_path / "page.md"
    prose = "Half takes 2 s, all of it 3 s, [other](other.md) 420 s, with `--max-wait 5s` 5 s."
    page.write_text(f"{prose}\n\n```console\n$ x\n2000 ms\n```\n\nOr 420 s.\n")
    assert [text.rpartition("[")[0] or text for text in unbacked(page)] == [
        "Half takes 2 s, all of it 3 s, ",
        "Or 420 s.",
    ]
