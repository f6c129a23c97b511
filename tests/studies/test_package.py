"""Installing by hash: what the lists say of each other, what is told of an absent extra, the wheel in a clean place."""

from __future__ import annotations

import hashlib
import sys
import tomllib
from email.message import Message
from importlib.metadata import Distribution, distribution, version
from pathlib import Path

import pytest

from gcnsim.cli.doctor import requirements
from studies.hashes import HASHED, ROOT, VERSIONS, hashed, normal, pins, with_wheels
from studies.licences import bundled, licence, listed, text
from studies.package import NEEDS, Environment, complaints, fails_in_one_line, from_file
from tests.building import built


def test_every_version_has_hashes_and_no_other_has() -> None:
    versions, entries = VERSIONS.read_text(encoding="utf-8"), HASHED.read_text(encoding="utf-8")
    assert pins(versions) == pins(entries)
    assert all("--hash=sha256:" in entry for entry in hashed(entries).values())
    assert {normal(name) for name, _ in requirements()[""]} <= set(pins(versions))


def test_a_wheel_at_hand_is_accepted_by_its_hash_when_it_is_of_the_version(tmp_path: Path) -> None:
    for name in (
        "torch-2.0+cpu-cp311-cp311-linux.whl",
        "torch-1.9-cp311-cp311-linux.whl",
        "other-2.0-py3-none-any.whl",
    ):
        (tmp_path / name).write_bytes(name.encode())
    found = with_wheels({"torch": "torch==2.0 \\\n    --hash=sha256:ab"}, {"torch": "2.0"}, tmp_path.glob("*.whl"))
    own = hashlib.sha256(b"torch-2.0+cpu-cp311-cp311-linux.whl").hexdigest()
    assert found == {"torch": f"torch==2.0 \\\n    --hash=sha256:ab \\\n    --hash=sha256:{own}"}


def test_the_file_that_was_resolved_is_installed_and_no_other_build_of_its_version() -> None:
    entry = "torch==2.0 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd"
    found = from_file(entry, "file:///wheels/torch-2.0%2Bcpu.whl")
    assert found == "torch @ file:///wheels/torch-2.0%2Bcpu.whl \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd"


@pytest.mark.parametrize(
    ("code", "errors", "content"),
    [
        (2, "gcnsim: dashboard: needs dash; pip install 'gcnsim[dashboard]'\n", True),
        (0, "gcnsim: dashboard: needs dash; pip install 'gcnsim[dashboard]'\n", False),
        (2, "gcnsim: dashboard: needs dash; pip install 'gcnsim[dask]'\n", False),
        (2, "Traceback\npip install 'gcnsim[dashboard]'\n", False),
        (2, "", False),
    ],
)
def test_an_absent_extra_is_told_in_one_line(code: int, errors: str, content: bool) -> None:
    assert fails_in_one_line(code, errors, "dashboard") is content


def test_what_needs_an_extra_is_asked_of_every_extra_but_one() -> None:
    """Whoever asks for DGL is told of torch first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = set(project["optional-dependencies"]) - {"dev", "docs", "release"}
    assert {extra for extra, _ in NEEDS} == ours - {"dgl"}


class MadeDistribution(Distribution):
    """A package of which only the metadata are known."""

    def __init__(self, **fields: str | list[str]) -> None:
        self.message = Message()
        for name, values in fields.items():
            for value in [values] if isinstance(values, str) else values:
                self.message[name.replace("_", "-")] = value

    def read_text(self, filename: str) -> str | None:
        return self.message.as_string() if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_a_licence_is_the_expression_then_the_classifier_then_the_text() -> None:
    classifier = ["License :: OSI Approved :: BSD License", "Programming Language :: Python"]
    assert licence(MadeDistribution(License_Expression="MIT", Classifier=classifier, License="x")) == "MIT"
    assert licence(MadeDistribution(Classifier=classifier, License="x")) == "BSD License"
    assert licence(MadeDistribution(License="Apache 2.0")) == "Apache 2.0"
    assert licence(MadeDistribution(Name="a")) == "not said"


def test_what_is_installed_is_listed() -> None:
    rows = {name: (version, content) for name, version, content in listed()}
    assert rows["click"] == (version("click"), licence(distribution("click")))
    assert {normal(name) for name, _ in requirements()[""]} <= set(rows)
    assert bundled() == ("plotly.js (cartesian)", "4.1.1", "MIT AND BSD-3-Clause AND ISC")
    assert text([("a", "1", "MIT"), ("longer", "1.0", "BSD")]) == "a       1    MIT\nlonger  1.0  BSD\n"


@pytest.mark.slow  # some three minutes: an environment of its own, and README's commands
def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    wheel = built(tmp_path, "build_wheel")
    environment = Environment(tmp_path.resolve() / "venv", sys.executable)
    try:
        environment.install(wheel, ())
    except RuntimeError as error:
        if "No matching distribution" in str(error) or "ConnectionError" in str(error):
            pytest.skip("no package index can be reached")
        raise
    assert list(complaints(environment, ())) == []
