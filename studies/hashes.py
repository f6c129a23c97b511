"""`python -m studies.hashes`: SHA-256 of every file of the versions in constraints.txt, into constraints-hashed.txt.

`uv` (on PATH or UV=path) reads them from the index; pip's own hashes are of the one file that fits this machine. A
build of torch for CPUs alone is not on that index: of what lies in a folder of wheels (`--wheels`, PIP_FIND_LINKS) the
hash is computed, so both builds of one version are accepted, and no other.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from gcnsim.core.atomic import atomic_write

ROOT: Final = Path(__file__).resolve().parents[1]
VERSIONS: Final = ROOT / "constraints.txt"
HASHED: Final = ROOT / "constraints-hashed.txt"
_HEAD: Final = "# The SHA-256 of every file of the versions in constraints.txt; written by `make constraints`.\n"
_PIN: Final = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    """The version of each package, by its normal name (PEP 503)."""
    return {normal(name): version for name, version in _PIN.findall(text)}


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def hashed(text: str) -> dict[str, str]:
    """The entry of each package with its hashes, by its normal name."""
    entries = re.split(r"\n(?=\S)", text.strip())
    return {normal(entry.split("==")[0]): entry for entry in entries if not entry.startswith("#")}


def with_wheels(entries: dict[str, str], versions: dict[str, str], wheels: Iterable[Path]) -> dict[str, str]:
    """The entries, and the hashes of wheels at hand that are of these versions, local builds (`+cpu`) included."""
    found = dict(entries)
    for wheel in sorted(wheels):
        name, version = normal(wheel.name.split("-")[0]), wheel.name.split("-")[1]
        line = f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
        if versions.get(name) == version.split("+")[0] and line not in found[name]:
            found[name] += f" \\\n    {line}"
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the file; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--wheels", type=Path, default=os.environ.get("PIP_FIND_LINKS"))
    folder = parser.parse_args(arguments).wheels
    uv = [os.environ.get("UV", "uv"), "pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-annotate"]
    content = subprocess.run(
        [*uv, "--no-header", "--python", sys.executable, str(VERSIONS)], capture_output=True, text=True, check=False
    )
    if content.returncode:
        sys.stderr.write(content.stderr)
        return 1
    versions = pins(VERSIONS.read_text(encoding="utf-8"))
    wheels = Path(folder).glob("*.whl") if folder and Path(folder).is_dir() else ()
    entries = with_wheels(hashed(content.stdout), versions, wheels)
    with atomic_write(HASHED) as file:
        file.write((_HEAD + "\n".join(entries[name] for name in sorted(entries)) + "\n").encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
