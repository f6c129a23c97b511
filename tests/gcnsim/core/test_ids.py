"""Facts hold read-only arrays."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.ids import frozen


def test_frozen_is_a_read_only_view_and_leaves_the_original_alone() -> None:
    array = np.arange(3)
    view = frozen(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7
    array[0] = 7
    assert view.tolist() == [7, 1, 2]
    assert np.shares_memory(array, view)
