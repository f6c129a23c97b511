"""First weights: drawn from named streams, so that every worker has the same; or from a file, as are best ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcnsim.errors import FileError
from gcnsim.fields.columns import FINITE, check_values
from gcnsim.graph.formats.arrays import opened
from gcnsim.graph.formats.source import file_start
from gcnsim.io.atomic import atomic_write
from gcnsim.streams import stream
from runtime.model.network import Network


def initialise(network: Network, seed: int) -> None:
    """Draw every weight from its own stream ("weights", name) of `seed`.

    Matrices and biases of a map from d_in values: uniform in +-1/sqrt(d_in). Attention vectors: Glorot's uniform range.
    Normalisation: scale 1, shift 0.
    """
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.startswith("norms.") or (name.endswith(".bias") and name.count(".") == 2):
                weight.fill_(1.0 if name.endswith(".weight") else 0.0)
                continue
            bound = _bound(network, name, weight)
            drawn = stream(seed, "weights", name).uniform(-bound, bound, tuple(weight.shape))
            weight.copy_(torch.from_numpy(drawn))


def _bound(network: Network, name: str, weight: Tensor) -> float:
    if ".attn_" in name:
        return float(np.sqrt(6.0 / (weight.shape[1] + 1)))
    matrix = weight if weight.dim() == 2 else network.get_parameter(name.replace(".bias", ".weight"))
    return float(1.0 / np.sqrt(matrix.shape[1]))


def save_weights(path: str | Path, network: Network) -> None:
    """Write every weight under its name into an .npz archive, atomically; FileError when it cannot be written."""
    arrays = {name: weight.detach().cpu().numpy() for name, weight in network.named_parameters()}
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_weights(path: str | Path, network: Network) -> None:
    """Set every weight from an .npz archive of arrays by name.

    Raises FileError when the archive is missing or damaged, lacks a weight, or has another or one of another shape.
    """
    source = Path(path)
    file_start(source)
    with opened(source) as archive:
        names = [item.removesuffix(".npy") for item in archive.zip.namelist()]
        arrays = {name: archive.array(name) for name in names}
    want = dict(network.named_parameters())
    missing, extra = sorted(want.keys() - arrays.keys()), sorted(arrays.keys() - want.keys())
    if missing or extra:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(extra)}"] * bool(extra)
        raise FileError(f"{path}: {'; '.join(said)}; this model has {', '.join(want)}")
    with torch.no_grad():
        for name, weight in want.items():
            array = arrays[name]
            if array.shape != tuple(weight.shape) or array.dtype.kind not in "fiu":
                raise FileError(f"{path}: {name} is {array.dtype}{list(array.shape)}; {list(weight.shape)} is needed")
            check_values(array, FINITE, f"{path}: {name}")
            weight.copy_(torch.from_numpy(array.astype(array.dtype.newbyteorder("="))))
