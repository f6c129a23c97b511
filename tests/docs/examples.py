"""The examples in README.md and docs/: found, run, compared with what is printed there, and rewritten.

Rules for writers:
- A `console` block holds `$ gcnsim ...` or `$ python -m runtime.train ...` lines, each followed by what it prints;
  nothing after it means: not compared. A line `...` stands for any lines. `console fails` is for a user's error: exit
  code 2.
- `console slow` is for what takes long: it runs under `pytest -m slow`, and is rewritten by
  `python -m tests.docs.examples --slow` alone. No other example of the document may use a file that it writes.
- `console shape` is for what is measured where it runs: words are compared, numbers and their units are not.
- A `python` block runs in a process of its own; a `text` block right after it is what it prints.
- The blocks of one document run in order, in one temporary folder with a copy of scenarios/.
- Between `<!-- generated: NAME -->` and `<!-- end -->` stands a table that the code writes (`generated.py`).
Numbers are compared to 2 %, spaces not at all. `make examples` runs this file, which writes the present output.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.picture import main as draw
from tests.docs.forked import Forked
from tests.docs.generated import generated

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "scenarios" / "README.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "studies" / "README.md",
)
TOLERANCE = 0.02
GAP = "..."
TRAIN = ("python", "-m", "runtime.train")
HIDDEN = ("GCNSIM_DATA", "COLUMNS", "FORCE_COLOR")

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
_MEASURED = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?(?: (?:ns|us|ms|s|min|h|B|KiB|MiB|GiB|%)(?!\w))?")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string, the line of its fence (from 0), and the lines inside."""

    info: str
    line: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """Something to run. first, last: the document's lines (from 0, last excluded) that hold the expected output.

    measured: numbers may be any. slow: it takes long, so it runs only when that is asked for.
    """

    command: tuple[str, ...]
    shown: str
    code: int
    expected: tuple[str, ...]
    first: int
    last: int
    measured: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """What an example did."""

    example: Example
    code: int
    printed: tuple[str, ...]
    errors: str

    @property
    def complaint(self) -> str:
        """What differs from the document; empty when nothing does."""
        where = f"line {self.example.first + 1}: {self.example.shown}"
        if self.code != self.example.code:
            return f"{where}: exit code {self.code}: {self.errors.strip()}"
        same = alike_in_shape if self.example.measured else alike
        if self.example.expected and not matches(self.example.expected, self.printed, same):
            return f"{where}: prints something else (make examples rewrites it):\n" + "\n".join(self.printed)
        return ""


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    lines = text.splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        if line.startswith("```"):
            if opened is None:
                opened = number
            else:
                yield Block(lines[opened][3:].strip(), opened, tuple(lines[opened + 1 : number]))
                opened = None


def examples_of(text: str) -> list[Example]:
    """What a document asks to be run."""
    examples: list[Example] = []
    blocks = list(blocks_of(text))
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        if block.info.split()[:1] == ["console"]:
            examples += _commands(block)
        elif block.info == "python":
            end = block.line + len(block.lines) + 2
            content = following is not None and following.info == "text" and following.line <= end + 1
            expected = following.lines if content and following is not None else ()
            first = following.line + 1 if content and following is not None else end
            command = (sys.executable, "-c", "\n".join(block.lines))
            examples.append(
                Example(command, f"python block, line {block.line + 1}", 0, expected, first, first + len(expected))
            )
    return examples


def _commands(block: Block) -> Iterator[Example]:
    starts = [at for at, line in enumerate(block.lines) if line.startswith("$ ")]
    for at, following in itertools.zip_longest(starts, starts[1:], fillvalue=len(block.lines)):
        end = at + 1
        while block.lines[end - 1].endswith("\\"):
            end += 1
        shown = " ".join(line.rstrip("\\").strip() for line in block.lines[at:end]).removeprefix("$ ")
        program, *arguments = shlex.split(shown)
        if program != "gcnsim" and (program, *arguments[:2]) != TRAIN:
            raise ValueError(f"line {block.line + at + 2}: a console block runs gcnsim or training, not {program}")
        offset = block.line + 1
        yield Example(
            (sys.executable, *(["-m", "gcnsim"] if program == "gcnsim" else []), *arguments),
            shown,
            2 if "fails" in block.info else 0,
            block.lines[end:following],
            offset + end,
            offset + following,
            "shape" in block.info,
            "slow" in block.info,
        )


def ran(text: str, *, slow: bool = False, python: str | None = None, forked: Forked | None = None) -> Iterator[Ran]:
    """Run the examples of a document, one after the other, in a folder of their own. slow: those that take long too.

    python: an interpreter that has gcnsim installed, to run them with in place of this one and its modules.
    forked: runs modules, in place of an interpreter that has to import them first.
    """
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "folder")
        shutil.copytree(ROOT / "scenarios", folder / "scenarios")
        for example in examples_of(text):
            if example.slow and not slow:
                continue
            if forked is not None and example.command[1] == "-m":
                done = forked.run(example.command[2], example.command[3:], folder)
            else:
                command = (python or example.command[0], *example.command[1:])
                quiet = environment(*(["PYTHONPATH"] if python else []))
                done = subprocess.run(command, cwd=folder, env=quiet, capture_output=True, text=True, check=False)
            message = done.stdout + (done.stderr if example.code else "")
            printed = tuple(line.rstrip() for line in message.rstrip().splitlines())
            yield Ran(example, done.returncode, printed, done.stderr)


def environment(*hidden: str) -> dict[str, str]:
    """That of examples: what would change what they print is not in it, nor is what `hidden` names."""
    return {name: value for name, value in os.environ.items() if name not in (*HIDDEN, *hidden)}


def matches(expected: Sequence[str], printed: Sequence[str], same: Callable[[str, str], bool] | None = None) -> bool:
    """Whether `printed` is what the document says, line by line; `...` stands for any lines. same: `alike` if None."""
    same = same or alike
    if not expected:
        return not printed
    if expected[0].strip() == GAP:
        return any(matches(expected[1:], printed[skip:], same) for skip in range(len(printed) + 1))
    return bool(printed) and same(expected[0], printed[0]) and matches(expected[1:], printed[1:], same)


def alike_in_shape(expected: str, printed: str) -> bool:
    """Whether two lines differ at most in numbers and their units."""
    return "".join(_MEASURED.sub("#", expected).split()) == "".join(_MEASURED.sub("#", printed).split())


def alike(expected: str, printed: str) -> bool:
    """Whether two lines say the same: equal words, numbers within TOLERANCE."""
    if ["".join(part.split()) for part in _NUMBER.split(expected)] != [
        "".join(part.split()) for part in _NUMBER.split(printed)
    ]:
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(printed), strict=True)
    return all(math.isclose(_value(a), _value(b), rel_tol=TOLERANCE) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def rewritten(text: str, *, slow: bool = False, forked: Forked | None = None) -> str:
    """The document with its present output; where it shows only the first lines, as many of them.

    slow: that of examples that take long too.
    """
    lines = text.splitlines()
    for item in reversed(list(ran(text, slow=slow, forked=forked))):
        example = item.example
        if item.code != example.code:
            raise RuntimeError(item.complaint)
        if example.measured and example.expected and not item.complaint:
            continue
        gaps = [line.strip() == GAP for line in example.expected]
        if not any(gaps) and example.expected:
            lines[example.first : example.last] = item.printed
        elif sum(gaps) == 1 and gaps[-1]:
            lines[example.first : example.last - 1] = item.printed[: len(gaps) - 1]
        elif item.complaint:
            found = refilled(example.expected, item.printed)
            if found is None:
                raise RuntimeError(f"{item.complaint}\nhas lines left out in the middle: rewrite it by hand")
            lines[example.first : example.last] = found
    return generated("\n".join(lines) + "\n")


def refilled(expected: Sequence[str], printed: Sequence[str]) -> list[str] | None:
    """What is printed now of an output with lines left out in the middle; None where it cannot be told.

    What stands between two gaps begins with the next paragraph that begins with the same word, and is as many whole
    paragraphs.
    """
    out: list[str] = []
    at = 0
    for gap, group in itertools.groupby(expected, lambda line: line.strip() == GAP):
        if gap:
            out.append(GAP)
            continue
        kept = list(group)
        starts = (k for k in range(at, len(printed)) if printed[k].split()[:1] == kept[0].split()[:1])
        at = next((k for k in starts if k == 0 or not printed[k - 1]), -1)
        if at < 0 or not kept[0].strip():
            return None
        start = at
        for _ in range(1 + kept[:-1].count("")):
            at = next((k for k in range(at + 1, len(printed)) if not printed[k]), len(printed))
        out += printed[start:at]
    return out


def main(arguments: Sequence[str] = ()) -> None:
    """Rewrite every document, and README's picture; with `--slow`, the output of examples that take long too."""
    wrong = [argument for argument in arguments if argument != "--slow"]
    if wrong:
        raise SystemExit(f"{wrong[0]}: not an option; allowed: --slow")
    draw()
    with tempfile.TemporaryDirectory() as folder, Forked(Path(folder), environment()) as forked:
        for document in DOCUMENTS:
            before = document.read_text(encoding="utf-8")
            after = rewritten(before, slow="--slow" in arguments, forked=forked)
            document.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{'rewritten' if after != before else 'current':<10}{document.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
