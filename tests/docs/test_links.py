"""Every relative link of every Markdown file leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.docs.examples import DOCUMENTS, ROOT

FOLDERS = ("docs", "scenarios", "benchmarks", "studies", "gcnsim", "runtime", "tests")
FILES = sorted({*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))})

_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_DEFINED = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)", re.MULTILINE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)? *$", re.MULTILINE)


def links_of(text: str) -> list[str]:
    """The targets of a document's relative links; those within code are text."""
    prose = _CODE.sub("`", _FENCED.sub("", text))
    return [link for link in (*_LINK.findall(prose), *_DEFINED.findall(prose)) if not _SCHEME.match(link)]


def anchors_of(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them: lower case, hyphens for spaces, no punctuation; the
    second of one name ends in -1.
    """
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in _HEADING.findall(_FENCED.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


@cache
def _anchors_at(path: Path) -> set[str]:
    return anchors_of(path.read_text(encoding="utf-8"))


def broken(document: Path, text: str) -> list[str]:
    """The relative links of a document that lead nowhere."""
    found = []
    for link in links_of(text):
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors_at(target)):
            found.append(link)
    return found


def test_every_document_is_among_them() -> None:
    assert {*DOCUMENTS, ROOT / "CHANGELOG.md"} <= set(FILES)


def test_relative_links_lead_to_files_and_headings() -> None:
    found = {str(path.relative_to(ROOT)): broken(path, path.read_text(encoding="utf-8")) for path in FILES}
    assert {page: links for page, links in found.items() if links} == {}


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# `what-if`: a title\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n", encoding="utf-8")
    good = "[a](other.md) [b](other.md#what-if-a-title) [c](other.md#twice-1) [d](https://example.org/x) `[e](no.md)`"
    page.write_text(good, encoding="utf-8")
    assert broken(page, good) == []
    bad = "[a](no.md) [b](other.md#no-heading) [c](#gone) ![d](no.png)\n\n[e]: no-such.md\n"
    assert broken(page, bad) == ["no.md", "other.md#no-heading", "#gone", "no.png", "no-such.md"]


_NAME = re.compile(r"`((?:gcnsim|runtime)(?:\.\w+)+)(?![\w/*-])")
"""A Python name in a document; what a slash or a hyphen follows is the name of a schema."""


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_names_in_code_exist() -> None:
    names = {name for path in DOCUMENTS for name in _NAME.findall(path.read_text(encoding="utf-8"))}
    chosen = sorted(name for name in names if not name.endswith((".yaml", ".profile")))
    assert [name for name in chosen if not resolves(name)] == []
    assert not resolves("gcnsim.trace.profile_at")
