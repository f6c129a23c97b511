"""The site of the documents: what is made of links, lists and fences, and that a link astray is found."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from gcnsim.core.schemas import DOCUMENTS as SCHEMAS
from studies.hashes import VERSIONS, pins
from studies.site import (
    anchor,
    astray,
    fenced,
    file_of,
    index,
    linked,
    listing,
    on_config,
    outside,
    page_of,
    rewritten,
    schema_index,
    schemas,
)
from tests.docs.examples import DOCUMENTS, ROOT
from tests.docs.test_links import anchors_of

NAMES = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]


def _settings() -> dict[str, object]:
    found = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _named(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    assert not isinstance(inner, type(None))
    return [name for item in inner for name in _named(item)]  # type: ignore[attr-defined]


def test_every_document_is_in_the_navigation_once() -> None:
    config = SimpleNamespace(mdx_configs={}, nav=_settings()["nav"], docs_dir=str(ROOT / "docs"))
    named = _named(on_config(config).nav)
    assert len(named) == len(set(named))
    assert {page_of(name) for name in NAMES} | {"index.md"} <= set(named)
    assert "repository/CONTRIBUTING.md" in named
    assert config.mdx_configs["toc"]["slugify"] is anchor


def test_the_navigation_names_only_what_is_there() -> None:
    assert [name for name in _named(_settings()["nav"]) if not (ROOT / file_of(name)).is_file()] == []


def test_nothing_is_loaded_from_elsewhere_by_the_theme() -> None:
    settings = _settings()
    theme = settings["theme"]
    assert isinstance(theme, dict)
    assert theme["font"] is False
    assert settings["extra_css"] == ["site.css"]
    assert "extra_javascript" not in settings
    assert "url(" not in (ROOT / "docs" / "site.css").read_text(encoding="utf-8")


def test_a_page_and_its_file_are_told_apart_and_found_again() -> None:
    pairs = {
        "README.md": "index.md",
        "docs/cli.md": "cli.md",
        "CHANGELOG.md": "repository/CHANGELOG.md",
        "studies/README.md": "repository/studies/README.md",
        "gcnsim/methods/pipegcn.py": "repository/gcnsim/methods/pipegcn.py.md",
        "LICENSE": "repository/LICENSE.md",
    }
    assert {name: page_of(name) for name in pairs} == pairs
    assert {file_of(page): page for page in pairs.values()} == pairs


def test_links_of_a_document_lead_to_pages_of_the_site() -> None:
    text = (
        "[a](../benchmarks/README.md#figures) [b](cli.md#x) [c](../LICENSE) [d](https://x.org/) [e](#here) "
        "`[f](../LICENSE)` ![g](scale.svg)"
    )
    assert rewritten(text, "docs/scale.md") == (
        "[a](repository/benchmarks/README.md#figures) [b](cli.md#x) [c](repository/LICENSE.md) [d](https://x.org/) "
        "[e](#here) `[f](../LICENSE)` ![g](scale.svg)"
    )
    assert rewritten("[a](docs/cli.md) ![b](docs/answer.svg)", "README.md") == "[a](cli.md) ![b](answer.svg)"
    assert rewritten("[a](../docs/cli.md)", "studies/README.md") == "[a](../../cli.md)"
    assert linked("../..", "docs/cli.md") is None
    assert linked("no.md", "docs/cli.md") is None


def test_lists_stand_apart_and_fences_have_a_language_alone() -> None:
    text = "Told:\n- a\n- b\n\n```console slow shape\n$ x\n- y\nz:\n- w\n```\n1. c\n2. d\n"
    assert rewritten(text, "docs/cli.md") == ("Told:\n\n- a\n- b\n\n```console\n$ x\n- y\nz:\n- w\n```\n1. c\n2. d\n")


def test_examples_of_docstrings_are_code() -> None:
    text = "Adds.\n\n>>> add(1,\n...     2)\n3\n\nMore."
    assert fenced(text) == "Adds.\n\n```pycon\n>>> add(1,\n...     2)\n3\n```\n\nMore."
    assert fenced(fenced(text)) == fenced(text)


def test_anchors_are_those_that_the_links_of_documents_use() -> None:
    for name in NAMES:
        found = anchors_of((ROOT / name).read_text(encoding="utf-8"))
        assert anchor("`x-y`: What, exactly?".replace("`", "")) == "x-y-what-exactly"
        assert all(anchor(text) == text for text in found)


def test_files_outside_docs_are_found_and_listed() -> None:
    found = outside(NAMES)
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "studies/README.md"} <= set(found)
    assert "README.md" not in found
    assert listing("LICENSE").startswith("# LICENSE\n\n`LICENSE`\n\n````text\nMIT License\n")


def test_every_schema_is_described() -> None:
    text = schemas()
    for name in SCHEMAS:
        assert f'??? note "{name}"' in text


def test_programs_find_every_page_with_its_first_sentence() -> None:
    text = index(
        [{"Home": "index.md"}, {"Guides": [{"Compare two iterations": "compare.md"}]}, "repository/studies/README.md"]
    )
    assert text.startswith("\n## Pages\n\n- [Home](index.html): ")
    assert text.endswith(
        "\n## Guides\n\n- [Compare two iterations](compare.html): "
        "`gcnsim compare A B` says where the difference between two iterations comes from."
    )
    assert "](repository/studies/index.html): " in text
    assert schema_index().count("](files.html#") == len(SCHEMAS)


def test_what_leads_nowhere_or_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").write_text('<h1 id="top">x</h1>')
    page = tmp_path / "index.html"
    page.write_text('<a href="folder/#top"></a><a href="https://x.org"></a><a href="#me"></a><p id="me"></p>')
    assert astray(tmp_path) == []
    page.write_text(
        '<a href="no.html"></a><a href="folder/#no"></a><img src="https://x.org/a.png">'
        '<link rel="stylesheet" href="//x.org/a.css"><script src="a.js"></script>'
    )
    assert astray(tmp_path) == [
        "index.html: no.html is not there",
        "index.html: folder/#no has no such heading",
        "index.html: loads https://x.org/a.png",
        "index.html: loads //x.org/a.css",
        "index.html: a.js is not there",
    ]


def test_readme_is_a_screen_and_a_half() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60
    assert ROOT / "README.md" in DOCUMENTS


def test_what_makes_the_site_has_a_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["optional-dependencies"]["docs"]) == 2
    assert {"mkdocs", "mkdocs-material", "mkdocstrings", "mkdocstrings-python"} <= set(pins(VERSIONS.read_text()))


@pytest.mark.slow  # some 20 s, and only where the extra docs is installed
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the extra docs is not installed")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "tutorial.html").is_file()
