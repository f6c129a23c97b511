from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.core.yaml_files import LIMIT, parse_yaml, read_yaml

BOMB = "\n".join(f"a{i}: &a{i} [{', '.join(9 * [f'*a{i - 1}'] if i else 9 * ['x'])}]" for i in range(9))
"""435 bytes that stand for 9 ** 9 values."""


def test_scalars_have_one_reading() -> None:
    text = "{a: 1, b: 1e-3, c: .5, d: on, e: 1:30, f: 2026-11-20, g: ~, h: true, i: 010, j: '1', k: 1_000}"
    assert parse_yaml(text, "t") == {
        "a": 1,
        "b": 0.001,
        "c": 0.5,
        "d": "on",
        "e": "1:30",
        "f": "2026-11-20",
        "g": None,
        "h": True,
        "i": 10.0,
        "j": "1",
        "k": "1_000",
    }


def test_nested_mappings_and_lists() -> None:
    assert parse_yaml("a:\n  b: [1, {c: 2}]\n", "t") == {"a": {"b": [1, {"c": 2}]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "t:2: not a valid YAML document: key 'a' is given twice"),
        ("x: {a: 1, a: 2}", "given twice"),
        ("a: [1", "t:"),
        ("a: 1\n---\nb: 2", "document"),
        ("? [1]\n: 2", "a key must be a plain word"),
        ("a: &x [*x]", "t:1: not a valid YAML document: an alias (*x); write out what it stands for"),
        (BOMB, "t:2: not a valid YAML document: an alias (*a0)"),
        ("!!python/object/apply:os.system [ls]", "a tag ('tag:yaml.org,2002:python/object/apply:os')"),
        ('a: 1\nb: !!int ""', "t:2: not a valid YAML document: a tag ('tag:yaml.org,2002:int'); write the value alone"),
        ("a: !!bool x", "a tag"),
        ("a: !!timestamp x", "a tag"),
        ("a: !!map [1]", "a tag"),
        ("a: ! x", "a tag"),
        ("a: 1\nb: 1" + 400 * "0", "t:2: not a valid YAML document: a whole number of 401 digits; allowed: at most 30"),
        ("a: -" + 5000 * "1", "a whole number of 5000 digits"),
        ("[" * 50_000, "nested more than 16 levels deep"),
        ("- " * 50_000, "nested more than 16 levels deep"),
        ("a: \x00", "not a valid YAML document"),
    ],
)
def test_what_is_not_one_plain_document_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_yaml(text, "t")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("a: µ\n", encoding="utf-8")
    assert read_yaml(good) == {"a": "µ"}
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml(tmp_path / "absent.yaml")
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(FileError, match="not UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a" * (LIMIT + 1))
    with pytest.raises(FileError, match="larger than"):
        read_yaml(tmp_path / "large.yaml")
