"""Figures of a server's CPU: sampling for GPU workers, messages for all workers."""

from __future__ import annotations

import numpy as np

from gcnsim.evidence.fitting import Laws, coefficients, every, mean, residual, single
from gcnsim.records.calibration import Fitted
from gcnsim.records.measurements import Measurements


def drawing(laws: Laws, measured: Measurements) -> None:
    """Drawing edges, building the drawn graph's matrices, recomputing probabilities: seconds per entry of each."""
    draw, thin = (single(measured, name) for name in ("draw", "thin"))
    entries = np.array([item.params["entries"] for item in draw])
    # Every row keeps its self-loop in a sampled graph: it is an entry of the matrices, and predictions count it.
    kept = np.array([item.params["kept"] + item.params["rows"] for item in draw])
    seconds = np.array([a.seconds + b.seconds for a, b in zip(draw, thin, strict=True)])
    per_entry, per_kept, each_time = coefficients(seconds, entries, kept, np.ones(seconds.shape))
    rules = [single(measured, name) for name in ("probabilities", "inclusion", "reweigh")]
    whole = np.array([sum(item.seconds for item in group) for group in zip(*rules, strict=True)])
    sizes = np.array([item.params["entries"] for item in rules[0]])
    rate = mean(sizes / whole)
    laws.host |= {
        "sample_edges_per_s": Fitted(1.0 / per_entry, "drawing and thinning, per stored entry"),
        "build_entries_per_s": Fitted(1.0 / per_kept, "matrices of a drawn graph, per kept entry"),
        "sort_edges_per_s": Fitted(rate, "probabilities, inclusion and weights, per stored entry"),
    }
    laws.residuals += [
        residual("sampling", entries * per_entry + kept * per_kept + each_time, seconds),
        residual("probabilities", sizes / rate, whole),
    ]


def messages(laws: Laws, measured: Measurements) -> bool:
    """Fit the CPU time of a message, per byte and per message at each end, and the delay of a small message.

    Returns whether transfers were measured.
    """
    sent, received = measured.of("p2p_oneway_cpu_sender"), measured.of("p2p_oneway_cpu_receiver")
    if not sent:
        return False
    # One message and a tiny answer: two messages at each end.
    nbytes = np.array([item.params["bytes"] for item in (*sent, *received)])
    seconds = np.array([item.seconds for item in (*sent, *received)])
    per_message, per_byte = coefficients(seconds, np.full(nbytes.shape, 2.0), nbytes)
    laws.host["message_s"] = Fitted(per_message, "processor time of point-to-point messages, per message and end")
    laws.host["socket_bandwidth"] = Fitted(1.0 / per_byte, "processor time of messages, per byte and end")
    laws.residuals.append(residual("sockets", 2.0 * per_message + nbytes * per_byte, seconds))
    tiny = min(every(measured, "p2p_oneway"), key=lambda item: item.params["bytes"])
    # The round trip less the CPU time at both ends.
    latency = max(tiny.seconds / 2 - 2 * per_message, 1e-6)
    laws.network["latency_s"] = Fitted(latency, "half of a small message and its answer, less the processors' work")
    return True
