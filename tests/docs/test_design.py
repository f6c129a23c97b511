"""The architecture's lists of packages are those of the tree, and of the contracts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.examples import ROOT

DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```", DESIGN, re.DOTALL | re.MULTILINE)


def listed(block: str) -> set[str]:
    """The names in the first column of a list."""
    columns = [re.split(r"\s{2,}", line.strip(" "))[0] for line in block.splitlines()]
    return {name for column in columns for name in re.split(r"[,|\s]+", column) if name}


def layered(package: str) -> set[str]:
    """The names in the contract of a package's layers."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (found["layers"] for found in settings["contracts"] if found.get("containers") == [package])
    return {name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)}


def promised(path: Path) -> bool:
    """Whether a module or package of `gcnsim` only hands on names."""
    return path.stem in {"errors", "ids", "knobs", "partition", "sampling"}


@pytest.mark.parametrize(("package", "block"), [("gcnsim", BLOCKS[0]), ("runtime", BLOCKS[1])])
def test_the_list_of_packages_is_that_of_the_tree(package: str, block: str) -> None:
    tree = {path.parent.name for path in (ROOT / package).glob("*/__init__.py") if not promised(path.parent)}
    modules = {path.stem for path in (ROOT / package).glob("*.py") if not promised(path)} - {"__init__", "__main__"}
    assert listed(block) - {"runtime"} == tree | modules
    assert layered(package) >= tree | modules
