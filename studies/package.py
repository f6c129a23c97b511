"""`make package`: the wheel of dist/ in clean environments outside the checkout, and README's commands run from there.

Once with the core alone, where what needs an extra must say so in one line, and once with everything. Versions are
those of constraints.txt, each file's hash one of constraints-hashed.txt: pip works out which packages are needed, then
installs these with `--require-hashes --no-deps`. (Hashes in constraints alone are not enough: pip 23 wants every
requirement of a requirement pinned too, and an editable installation cannot have a hash at all.)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from studies.hashes import HASHED, ROOT, VERSIONS, hashed, normal
from tests.docs.examples import TRAIN, ran

_EVERYTHING: Final = ("runtime", "dgl", "caches", "dask", "ray", "recommend", "dashboard")
_SWEEP: Final = "-m gcnsim sweep --axis cluster.bandwidth=5Gbps,15Gbps --set cluster.gpus=2 --out points"
_TRACE: Final = (
    "-m gcnsim graph generate block --nodes 300 --edges 900 --out g.npz",
    "-m gcnsim trace record g.npz --parts 2 --epsilon 0.5 --iterations 2 --out g.trace",
)
NEEDS: Final = (
    ("runtime", "-m runtime.train --iterations 1"),
    ("runtime", "-m runtime.profile --quick"),
    ("runtime", "-m runtime.survey"),
    ("runtime", "-m runtime.emulate --hosts 2 --bandwidth 1Gbps"),
    ("caches", "-m gcnsim trace cache-curve g.trace --policy lru"),
    ("dask", f"{_SWEEP} --executor dask --scheduler tcp://127.0.0.1:1"),
    ("ray", f"{_SWEEP} --executor ray --address 127.0.0.1:1"),
    ("recommend", "-m gcnsim recommend --gpus 2,4,8 --target-iteration 1.5s --limit 2"),
    ("dashboard", "-m gcnsim dashboard"),
)
"""What cannot be answered without an extra, and the extra that it must name."""


def fails_in_one_line(code: int, errors: str, extra: str) -> bool:
    """Whether a command without its extra ended as it should: one line that says what to install."""
    return code in (1, 2) and len(errors.splitlines()) == 1 and f"gcnsim[{extra}]" in errors


def from_file(entry: str, url: str) -> str:
    """The entry of a package with its hashes, of the file at `url` alone.

    By version and hash pip prefers an index that says hashes, so torch would be its build with CUDA where the resolved
    one is the build for CPUs in a folder of wheels, and what that needs of CUDA would be missing.
    """
    pin, mark, hashes = entry.partition(" \\\n")
    return f"{pin.split('==')[0]} @ {url}{mark}{hashes}"


class Environment:
    """A virtual environment outside the checkout that has nothing but what the wheel asks for."""

    def __init__(self, folder: Path, python: str) -> None:
        """Make it in `folder` with the interpreter `python`. Raises CalledProcessError."""
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.python = str(folder / "bin" / "python")
        self.folder = folder

    def call(self, arguments: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """What its interpreter says to `arguments`, without this process's modules."""
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GCNSIM_DATA")}
        command = [self.python, *arguments]
        return subprocess.run(command, cwd=cwd or self.folder, env=env, capture_output=True, text=True, check=False)

    def _pip(self, *arguments: str) -> None:
        done = self.call(["-m", "pip", "--disable-pip-version-check", *arguments])
        if done.returncode:
            raise RuntimeError(f"pip {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")

    def install(self, wheel: Path, extras: Sequence[str]) -> int:
        """Install the wheel and what it needs, each file by its hash; how many packages. Raises RuntimeError."""
        name = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        report, needed = self.folder / "report.json", self.folder / "needed.txt"
        self._pip("install", "--quiet", "--dry-run", "--report", str(report), "--constraint", str(VERSIONS), name)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
        files = {normal(entry["metadata"]["name"]): str(entry["download_info"]["url"]) for entry in found}
        names = sorted(files.keys() - {"gcnsim"})
        entries = hashed(HASHED.read_text(encoding="utf-8"))
        unknown = [name for name in names if name not in entries]
        if unknown:
            raise RuntimeError(f"{HASHED.name}: has no hashes of {', '.join(unknown)}; make constraints writes it")
        needed.write_text("\n".join(from_file(entries[name], files[name]) for name in names) + "\n", encoding="utf-8")
        self._pip("install", "--quiet", "--require-hashes", "--no-deps", "--requirement", str(needed))
        self._pip("install", "--quiet", "--no-deps", "--no-index", str(wheel))
        self._pip("check")
        return len(names)

    def site(self) -> str:
        """The folder of its installed packages."""
        return self.call(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).stdout.strip()


def complaints(environment: Environment, extras: Sequence[str]) -> Iterator[str]:
    """What README's commands, and those that need an extra, do in an environment that they should not."""
    outside = environment.call(["-c", "import gcnsim, runtime; print(gcnsim.__file__, runtime.__file__)"]).stdout
    if outside.count(str(environment.folder)) != 2:
        yield f"gcnsim is not taken from the wheel, but from {outside.strip()}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for item in ran(readme, python=environment.python):
        trains = item.example.shown.startswith(" ".join(TRAIN))
        if trains and "runtime" not in extras and fails_in_one_line(item.code, item.errors, "runtime"):
            continue
        if item.complaint:
            yield f"README.md, {item.complaint}"
    if set(extras) != set(_EVERYTHING):
        yield from _without_message(environment, extras)


def _without_message(environment: Environment, extras: Sequence[str]) -> Iterator[str]:
    """Commands that need an extra that is absent, and do not say so in one line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in _TRACE:
            made = environment.call(line.split(), folder)
            if made.returncode:
                yield f"{line}: {made.stderr.strip()}"
        for extra, line in NEEDS:
            arguments = line.split()
            if extra in extras:
                continue
            done = environment.call(arguments, folder)
            if not fails_in_one_line(done.returncode, done.stderr, extra):
                yield f"{' '.join(arguments[:4])}: without {extra}: exit code {done.returncode}: {done.stderr.strip()}"


def _version(python: str) -> str | None:
    """`3.12` of an interpreter; None where there is none (the shims of version managers may lead nowhere)."""
    try:
        done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.match(r"Python (3\.\d+)", done.stdout)
    return found[1] if found and done.returncode == 0 else None


def main(arguments: Sequence[str]) -> int:
    """Install and run for each interpreter; 1 when anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--core", nargs="*", default=["python3.11", "python3.12", "python3.13"], metavar="PYTHON")
    parser.add_argument("--everything", nargs="*", default=["python3.11"], metavar="PYTHON")
    options = parser.parse_args(arguments)
    wheels = sorted((ROOT / "dist").glob("gcnsim-*.whl"))
    if len(wheels) != 1:
        sys.stderr.write("dist/: needs one wheel; make dist builds it\n")
        return 2
    failed = 0
    for python, extras in [
        *((item, ()) for item in options.core),
        *((item, _EVERYTHING) for item in options.everything),
    ]:
        failed += _tried(wheels[0], python, extras)
    return int(failed > 0)


def _tried(wheel: Path, python: str, extras: Sequence[str]) -> int:
    """How many complaints there are of one interpreter, with everything or the core alone; told in a line each."""
    version, what = _version(python), "everything" if extras else "core alone"
    if version is None:
        sys.stdout.write(f"not tested: {python}, {what}: no such interpreter here\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="gcnsim-package-") as folder:
        environment = Environment(Path(folder).resolve() / "venv", python)
        try:
            count = environment.install(wheel, extras)
            found = list(complaints(environment, extras))
        except RuntimeError as error:
            count, found = 0, [str(error)]
    sys.stdout.write(f"{'failed' if found else 'passed'}: Python {version}, {what}, {count} packages by hash\n")
    sys.stdout.write("".join(f"  {line}\n" for line in found))
    return len(found)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
