"""What the build backend makes of a copy of the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

_BUILD = """
import os, sys
from setuptools import build_meta
os.chdir(sys.argv[1])
print(getattr(build_meta, sys.argv[2])(sys.argv[3]))
"""


def tracked() -> set[str]:
    """The files of the checkout that git keeps; the test is skipped where there is no git."""
    content = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if content.returncode:
        pytest.skip("not a checkout of git")
    return {name for name in content.stdout.split("\0") if name and (ROOT / name).is_file()}


def built(folder: Path, kind: str) -> Path:
    """The archive that `kind` (`build_wheel`, `build_sdist`) makes of what git keeps, in `folder`."""
    source, out = folder / "source", folder / "out"
    out.mkdir()
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(source), kind, str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]
