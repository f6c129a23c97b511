"""What mutations put in place of what stands in a file."""

from __future__ import annotations

from typing import Any, Final

WORDS: Final = (
    *(b"0", b"-1", b"1", b"-0", b"0.0", b"1e308", b"-1e-320", b"1e999", b"nan", b"NaN", b"inf", b"-inf", b"1_0"),
    *(
        b"9" * 400,
        b"9223372036854775807",
        b"-9223372036854775808",
        b"4294967296",
        b"2147483648",
        b"18446744073709551615",
    ),
    *(
        b"null",
        b"true",
        b"false",
        b"",
        b"''",
        b'""',
        b"{}",
        b"[]",
        b"[[[[",
        b"*a",
        b"&a [1]",
        b"!!int x",
        b"<<: 1",
        b"%",
    ),
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J", b"\n", b"\r\n", b"\t", b" ", b",", b";", b"#", b"PK\x03\x04"),
    *("\u00e9".encode(), "\u0661".encode(), "\u2028".encode(), b"\xed\xa0\x80", b"../../x", b"/dev/zero", b"a" * 300),
)
"""What upsets parsers: limits of number types, special values, marks of syntax, text that is none."""

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e-320, 1e29, 1e308, float("inf"), float("nan"), 2**31, 2**63, 2**64),
    *(
        10**29,
        10**400,
        "",
        " ",
        "0",
        "nan",
        "a" * 5000,
        "\x1b[2J",
        "\u0000",
        "\ud800",
        "1e999",
        "é",
        "٣",
        "30%",
        "5Gbps",
    ),
    *([], {}, [[]], [None], {"": None}, [0] * 500, "*a", "!!int 1", "NaN", "-1ms", "=1+1", "../x", 3.0, 1e15, 10**18),
)
"""Values in place of others in a document."""
