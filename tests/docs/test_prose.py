"""Documents, help and messages are plain English: short sentences, short lines, no words that only authors understand.

A sentence is counted outside code, tables, headings and generated parts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click

from studies.command_help import commands
from tests.docs.examples import ROOT

LONGEST = 26
"""Words in a sentence, at most."""
MEAN = 15
"""Words in a sentence of a page, on average, at most."""
WIDEST = 160
"""Characters in a line of the source, at most, outside tables and code."""
BANNED = (
    "besides",
    "at hand",
    "take home",
    "told",
    "lay beside",
    "laid beside",
    "lays",
    "the house",
    "rooms?",
    "floors?",
    "doors?",
    "as cut",
    "nobody",
    "goes on",
    "went on",
    "whoever asks",
    "where nothing is said",
    "is no [a-z]+",
    "are no [a-z]+",
    "beneath",
    "brings less",
    "escapes",
    "for want of",
    "goes without",
    "goes before",
    "how sure",
    "if not said",
    "in the place of",
    "joint draws",
    "of those that",
    "owed",
    "stands? there",
    "such as have",
    "which is what",
    "was begun",
    "where one plans",
)
"""Private words, translated idioms and negated existence; the design notes list a better wording for each."""
ALLOWED = ("cannot be told apart", "floor(p n)", "there is no", "there are no", "are no larger")
"""Words of the program's answers and of formulas."""
PROGRAM = ("is no longer", "room of ", "beneath: ")
"""Words of the program besides: of time, of a key of a cache, and of a key of JSON."""
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))

_CODE = re.compile(r"^<!-- generated:.*?<!-- end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")


def prose(text: str) -> str:
    """A document without fenced code and generated parts."""
    return _CODE.sub("", text)


def sentences(text: str) -> list[str]:
    """The sentences of a document; one that ends in a colon or semicolon counts as ended."""
    paragraphs: list[list[str]] = [[]]
    for line in prose(text).splitlines():
        if not line.strip() or line.startswith(("|", "#", "<!--", ":::", "![")):
            paragraphs.append([])
            continue
        if _ITEM.match(line):
            paragraphs.append([])
        paragraphs[-1].append(_ITEM.sub("", line, count=1).strip())
    found: list[str] = []
    for lines in paragraphs:
        plain = re.sub(r"`[^`]*`", "X", " ".join(lines))
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        found += [word for word in re.split(r"(?<=[.!?:;])[\"*)]*\s+", plain) if re.search(r"\w", word)]
    return found


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def banned(text: str) -> list[str]:
    """The banned words of a document, each with what stands around it."""
    plain = re.sub(r"`[^`]*`", "X", " ".join(prose(text).split()))
    for allowed in ALLOWED:
        plain = re.sub(re.escape(allowed), "X", plain, flags=re.IGNORECASE)
    hits = re.finditer(rf"\b(?:{'|'.join(BANNED)})\b", plain, re.IGNORECASE)
    return [plain[max(0, hit.start() - 30) : hit.end() + 30] for hit in hits]


TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}


def test_sentences_are_short() -> None:
    found = {name: sentences(text) for name, text in TEXTS.items()}
    assert [text for texts in found.values() for text in texts if words(text) > LONGEST] == []
    assert [name for name, texts in found.items() if sum(map(words, texts)) > MEAN * len(texts)] == []


def test_words_are_those_of_the_field() -> None:
    assert [(name, found) for name, text in TEXTS.items() for found in banned(text)] == []


def test_lines_are_short() -> None:
    lines = [(name, line) for name, text in TEXTS.items() for line in prose(text).splitlines()]
    assert [(name, line) for name, line in lines if len(line) > WIDEST and not line.startswith("|")] == []


def helps(command: click.Command) -> list[str]:
    """The help of a command and of its options, examples left out."""
    options = [param.help or "" for param in command.params if isinstance(param, click.Option)]
    return [(command.help or "").partition("\b")[0], *options]


def test_help_is_plain() -> None:
    texts = [text for command in commands().values() for text in helps(command)]
    assert [found for text in texts for found in banned(text)] == []
    assert [sentence for text in texts for sentence in sentences(text) if words(sentence) > LONGEST] == []


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines; an X for each value put in."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    blocks = [node.body for node in ast.walk(tree) if isinstance(node, described)]
    docstrings = {id(item.value) for body in blocks for item in body if isinstance(item, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (value.value if isinstance(value, ast.Constant) else "X" for value in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def test_messages_are_plain() -> None:
    found = []
    for path in sorted([*(ROOT / "gcnsim").rglob("*.py"), *(ROOT / "runtime").rglob("*.py")]):
        for line, text in messages(ast.parse(path.read_text(encoding="utf-8"))):
            for word in PROGRAM:
                text = text.replace(word, "X")
            found += [f"{path.relative_to(ROOT)}:{line}: {word}" for word in banned(text) if " " in text.strip()]
    assert found == []


def test_what_is_wrong_is_found() -> None:
    text = "One. Two `a b c` [three four](x.md):\n- It is told. Nobody asks.\n\n```\nrooms\n```\n| doors |\n"
    assert sentences(text) == ["One.", "Two X three four:", "It is told.", "Nobody asks."]
    assert [words(sentence) for sentence in sentences(text)] == [1, 4, 3, 2]
    assert len(banned(text)) == 3
    assert banned("They cannot be told apart. `room`") == []
