"""Names that are imported when first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gcnsim.graph
from gcnsim.core.lazy import lazily


def test_a_name_is_that_of_its_module() -> None:
    from gcnsim.graph.load import load_graph

    assert gcnsim.graph.load_graph is load_graph
    assert vars(gcnsim.graph)["load_graph"] is load_graph, "and is looked up once"


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'gcnsim\.graph' has no attribute 'nothing'"):
        lazily("gcnsim.graph", {"load_graph": "gcnsim.graph.load"})("nothing")


@pytest.mark.parametrize("package", ["api", "graph"])
def test_every_public_name_is_there(package: str) -> None:
    code = f"import gcnsim.{package} as one; [getattr(one, name) for name in one.__all__]; print('done')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
