"""Names that are imported when first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gcnsim.evidence
from gcnsim.lazy import lazily


def test_a_name_is_that_of_its_module() -> None:
    from gcnsim.evidence.recorded_run import scenario_of

    assert gcnsim.evidence.scenario_of is scenario_of
    assert vars(gcnsim.evidence)["scenario_of"] is scenario_of, "and is looked up once"


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'gcnsim\.evidence' has no attribute 'nothing'"):
        lazily("gcnsim.evidence", {"scenario_of": "gcnsim.evidence.recorded_run"})("nothing")


@pytest.mark.parametrize("package", ["api", "evidence", "graph", "partition", "sources"])
def test_every_public_name_is_there(package: str) -> None:
    code = f"import gcnsim.{package} as one; [getattr(one, name) for name in one.__all__]; print('done')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
