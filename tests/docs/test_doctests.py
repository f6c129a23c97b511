"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib

from tests.docs.examples import ROOT


def test_examples_in_docstrings_print_what_they_say() -> None:
    files = sorted(path for path in (ROOT / "gcnsim").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) >= 10
