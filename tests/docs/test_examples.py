"""Every example in the documents runs and prints what they say; every table they generate is current."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from gcnsim.core.errors import ScenarioError
from runtime.train.tasks import tasks_of
from studies.command_help import commands, with_help
from tests.docs.examples import (
    DOCUMENTS,
    ROOT,
    Example,
    alike,
    alike_in_shape,
    blocks_of,
    environment,
    examples_of,
    matches,
    ran,
    refilled,
)
from tests.docs.forked import Forked
from tests.docs.generated import generated, table

IDS = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in zip(IDS, DOCUMENTS, strict=True)}
KNOWN = {
    "console",
    "console fails",
    "console shape",
    "console slow",
    "console slow shape",
    "python",
    "text",
    "sh",
    "yaml",
    "json",
    "toml",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Path, Future[list[str]]]]:
    """What the examples of each document do that it does not say. Two documents at a time: most examples wait."""
    longest = sorted(DOCUMENTS, key=lambda document: -len(examples_of(document.read_text(encoding="utf-8"))))

    def complaints_of(document: Path) -> list[str]:
        found = ran(document.read_text(encoding="utf-8"), forked=forked)
        return [item.complaint for item in found if item.complaint]

    with Forked(tmp_path_factory.mktemp("forked"), environment()) as forked, ThreadPoolExecutor(2) as pool:
        yield {document: pool.submit(complaints_of, document) for document in longest}


@pytest.mark.parametrize("document", DOCUMENTS, ids=IDS)
def test_examples_print_what_the_document_says(document: Path, complaints: Mapping[Path, Future[list[str]]]) -> None:
    result = complaints[document].result()
    assert not result, "\n\n".join(result)


def _slow() -> list[Path]:
    return [
        path for path in DOCUMENTS if any(example.slow for example in examples_of(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("document", _slow(), ids=[path.name for path in _slow()])
def test_slow_examples_print_what_the_document_says(document: Path) -> None:
    found = [item.complaint for item in ran(document.read_text(encoding="utf-8"), slow=True) if item.example.slow]
    assert [complaint for complaint in found if complaint] == []


def _trainings() -> list[str]:
    """Slow examples that train: a worker imports torch for seconds, and what may be wrong is an option."""
    examples = (
        example for path in _slow() for example in examples_of(path.read_text(encoding="utf-8")) if example.slow
    )
    return [example.shown for example in examples if example.command[1:3] == ("-m", "runtime.train")]


def test_slow_trainings_have_options_that_are_accepted() -> None:
    requested = [shlex.split(shown)[3:] for shown in _trainings()]
    assert len(requested) >= 4
    assert all(len(tasks_of(arguments) or ()) == 1 for arguments in requested)
    for wrong in (["--no-such-option"], ["--layers", "x"], ["--overlap", "some"]):
        with pytest.raises((click.ClickException, ScenarioError)):
            tasks_of([*requested[0], *wrong])


def test_generated_tables_are_current() -> None:
    assert [name for name, text in TEXTS.items() if generated(text) != text] == []


def test_every_block_says_what_it_is() -> None:
    assert {block.info for text in TEXTS.values() for block in blocks_of(text)} <= KNOWN


def test_files_named_in_backticks_exist() -> None:
    path = re.compile(r"`((?:gcnsim|tests|docs|scenarios|benchmarks|studies|runtime)/[\w./-]+)`")
    named = {(page, name) for page, text in TEXTS.items() for name in path.findall(text)}
    assert [(page, name) for page, name in sorted(named) if not (ROOT / name).exists()] == []


def test_make_targets_in_sh_blocks_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    blocks = [block for text in TEXTS.values() for block in blocks_of(text) if block.info == "sh"]
    requested = {name for block in blocks for line in block.lines for name in re.findall(r"^make ([a-z-]+)", line)}
    assert {"what-if", "train", "test"} <= requested <= set(targets)


PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
SHOWN = [example.shown for example in examples_of(PAGE)]
MEASURING = tuple(f"python -m runtime.{name}" for name in ("emulate", "measure", "profile", "survey"))
"""They need root, an idle machine or minutes: no example of them is run."""


def test_every_command_has_an_example_and_its_help() -> None:
    page = with_help(PAGE)
    assert sorted(re.findall(r"^## (.+)$", PAGE, re.MULTILINE)) == sorted([*commands(), "Python"])
    assert "trusted networks only" in page
    for name, command in commands().items():
        if name == "gcnsim":
            continue
        assert name in MEASURING or any(line.startswith(name) for line in SHOWN)
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        content = "".join(section.split())
        assert f'???note"{name}--help"'.replace(" ", "") in content
        for option in (param for param in command.params if isinstance(param, click.Option) and not param.hidden):
            assert all(word in content for word in option.opts), option.opts
        assert "xample" in section.partition("--help")[2]


def test_slow_examples_run_only_where_that_is_asked_for() -> None:
    text = "```console slow\n$ gcnsim --version\n```\n"
    assert list(ran(text)) == []
    (example,) = examples_of(text)
    assert (example.slow, example.code, example.measured) == (True, 0, False)


@pytest.mark.parametrize("line", ["rm x", "python -m http.server", "python x.py"])
def test_nothing_else_is_run(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: a console block runs gcnsim or training, not"):
        examples_of(f"```console\n$ {line}\n```\n")


def test_the_text_after_python_is_what_it_prints() -> None:
    (example,) = examples_of("```python\nimport sys\n```\n\n```text\n3\n```\n")
    assert isinstance(example, Example)
    assert example.command[-1] == "import sys"
    assert (example.expected, example.first) == (("3",), 5)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b", "c"], True),
        (["...", "c"], ["a", "b", "c"], True),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "c"], ["a", "c", "d"], False),
        (["..."], [], True),
    ],
)
def test_a_gap_stands_for_any_lines(expected: list[str], printed: list[str], same: bool) -> None:
    assert matches(expected, printed) is same


def test_paragraphs_between_gaps_are_found_again() -> None:
    printed = ["table 1", "  a 2", "", "Why", "  b", "", "Steps", "  c 3", "  d", "", "Provenance"]
    assert refilled(["table 9", "...", "Steps", "  c 9", "..."], printed) == [*printed[:2], "...", *printed[6:9], "..."]
    assert refilled(["table 9", "", "Why", "...", "Steps", "..."], printed) == [
        *printed[:5],
        "...",
        *printed[6:9],
        "...",
    ]
    assert refilled(["table", "...", "Gone", "..."], printed) is None


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("took 100 ms", "took   101 ms", True),
        ("took 100 ms", "took 103 ms", False),
        ("took 100 ms", "took 100 us", False),
        ("1,234 rows", "1,235 rows", True),
        ("hash 5dd4e4", "hash 5dd4e5", False),
    ],
)
def test_numbers_may_differ_a_little_and_words_not(expected: str, printed: str, same: bool) -> None:
    assert alike(expected, printed) is same


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("compute  3.88 ms   37.5 %", "compute  942 us  9.1 %", True),
        ("bytes sent  44.2 MiB, 226 KiB an iteration", "bytes sent  1.2 GiB, 5 B an iteration", True),
        ("final loss  0.0155", "final loss  5.8e-05", True),
        ("2 workers in 8.3 s", "2 workers in 1 min", True),
        ("cache hit rate  -", "cache hit rate  30 %", False),
        ("2 workers", "2 servers", False),
    ],
)
def test_what_is_measured_is_compared_in_shape(expected: str, printed: str, same: bool) -> None:
    assert alike_in_shape(expected, printed) is same
    assert matches([expected], [printed], alike_in_shape) is same


def test_bars_in_cells_are_escaped() -> None:
    assert table(("a", "b"), [("1|2", "3")]).splitlines() == ["| a | b |", "|---|---|", "| 1\\|2 | 3 |"]
