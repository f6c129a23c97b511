"""`make licences`: packages that gcnsim and its extras bring, with version and licence, from installed metadata.

The last line is the library that is part of gcnsim's files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from typing import Final

from gcnsim.report.page.templates import BUNDLE
from studies.hashes import normal

_CLASSIFIER: Final = "License :: "
_UNSAID: Final = "not said"


def licence(package: Distribution) -> str:
    """What the metadata of a package say of its licence: the expression, else classifiers, else its first line."""
    metadata = package.metadata
    content = metadata.get_all("License-Expression", [])
    if content:
        return str(content[0])
    named = [line.rsplit(" :: ", 1)[1] for line in metadata.get_all("Classifier", []) if line.startswith(_CLASSIFIER)]
    named = [name for name in named if name != "OSI Approved"]
    if named:
        return ", ".join(sorted(named))
    lines = "".join(metadata.get_all("License", [])).strip().splitlines()
    return lines[0].strip() if lines else _UNSAID


def listed(paths: Sequence[str] | None = None) -> list[tuple[str, str, str]]:
    """Name, version and licence of every package installed in `paths` (here, where none are given), by name."""
    found = distributions() if paths is None else distributions(path=list(paths))
    packages = {normal(item.metadata["Name"]): item for item in found if item.metadata["Name"]}
    return [(name, packages[name].version, licence(packages[name])) for name in sorted(packages)]


def bundled() -> tuple[str, str, str]:
    """The same of the library that is part of gcnsim's files."""
    return BUNDLE.name, BUNDLE.version, BUNDLE.licence


def text(rows: Sequence[tuple[str, str, str]]) -> str:
    """The rows as a table for people."""
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "".join(f"{name:<{widths[0]}}  {version:<{widths[1]}}  {message}\n" for name, version, message in rows)


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where a package does not say its licence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help="folders of installed packages, as a rule none")
    rows = [*listed(parser.parse_args(arguments).paths or None), bundled()]
    sys.stdout.write(text(rows))
    return int(any(message == _UNSAID for _, _, message in rows))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
