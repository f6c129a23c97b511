from __future__ import annotations

import pytest

from gcnsim.core import spellings, units


@pytest.mark.parametrize(
    "quantity",
    [units.BANDWIDTH, units.NBYTES, units.SECONDS, units.FRACTION, units.FLOPS, units.MONEY, units.RATE],
)
def test_other_spellings_never_change_a_proper_symbol(quantity: units.Quantity) -> None:
    """What is read of a symbol as if it were a spelling is that symbol's own factor, or a doubt."""
    for symbol, factor in quantity.units.items():
        found = quantity.other(spellings.plain(symbol))
        assert not isinstance(found, str) or quantity.units[found] == factor, symbol


def test_every_choice_offered_is_a_unit() -> None:
    letters = ("", "k", "K", "m", "M", "g", "G", "ki", "Ki", "KI")
    ends = ("", "b", "B", "bit", "byte", "b/s", "B/s", "bps", "Bps", "BPS", "bit/s", "Bytes/s", "s")
    for quantity in (units.BANDWIDTH, units.NBYTES, units.SECONDS):
        for text in (f"{letter}{end}" for letter in letters for end in ends):
            found = quantity.other(text)
            offered = found.choices if isinstance(found, spellings.AmbiguousUnit) else (found,) if found else ()
            assert set(offered) <= {*quantity.units}, text
