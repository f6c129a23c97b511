"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import gcnsim


def test_examples_in_docstrings_print_what_they_say() -> None:
    found = pkgutil.walk_packages(gcnsim.__path__, "gcnsim.")
    modules = [importlib.import_module(item.name) for item in found if not item.name.endswith("__main__")]
    results = {module.__name__: doctest.testmod(module) for module in modules}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) >= 10
