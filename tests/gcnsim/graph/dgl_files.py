"""Folders as DGL writes them, made without DGL: the JSON, and files of `dgl.data.utils.save_tensors`."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.ids import AnyArray

CODES = {"i": 0, "u": 1, "f": 2}


def tensors(arrays: Mapping[str, AnyArray]) -> bytes:
    """The bytes of `save_tensors`, as DGL 1.1.3 and 2.x write them."""
    data = struct.pack("<QQQ", 0xDD5A9FBE3FA2443F, len(arrays), len(arrays))
    for name, array in arrays.items():
        data += struct.pack("<Q", len(name)) + name.encode()
        data += struct.pack("<QQii", 0xDD5E40F096B4A13F, 0, 1, 0) + struct.pack("<i", array.ndim)
        data += struct.pack("<BBH", CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1)
        data += struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<q", array.nbytes) + array.tobytes()
    return data


def folder(home: Path, node_map: Any, original: Sequence[AnyArray] | None = None, **more: Any) -> Path:
    """A partition folder at `home`: its JSON with `node_map` and `more`. original: what each `orig_nids.dgl` holds."""
    parts = more.setdefault("num_parts", 2)
    home.mkdir(parents=True, exist_ok=True)
    text = {"graph_name": "ring", "part_method": "metis", "halo_hops": 1, "node_map": node_map, **more}
    for part in range(parts):
        text[f"part-{part}"] = {"part_graph": f"part{part}/graph.dgl"}
        (home / f"part{part}").mkdir(exist_ok=True)
        (home / f"part{part}" / "graph.dgl").write_bytes(b"only DGL reads this")
        if original is not None:
            (home / f"part{part}" / "orig_nids.dgl").write_bytes(tensors({"_N": np.asarray(original[part])}))
    (home / "ring.json").write_text(json.dumps(text))
    return home
