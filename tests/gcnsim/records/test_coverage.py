"""One rule for runs and questions: which settings lie beyond those that a calibration saw."""

from __future__ import annotations

from gcnsim.records.calibration import beyond, settings

PLACE = {"hosts": 2, "workers_per_host": 2, "bandwidth": 1e8, "latency_s": 0.0}
NAMES = {"method": "psc-gcn", "model": "gcn", "graph": "feed"}
KNOBS = {"tau": 2, "epsilon": 0.1, "cache": "30%", "sampler": "vr"}


def test_numbers_are_kept_as_they_are_and_names_as_keys() -> None:
    found = settings(NAMES, PLACE, (32, 64, 16, 8), KNOBS)
    assert found == {
        "method.psc-gcn": 1,
        "model.gcn": 1,
        "graph.feed": 1,
        "workers": 4,
        "hosts": 2,
        "workers_per_host": 2,
        "bandwidth": 1e8,
        "latency_s": 0,
        "features": 32,
        "layers": 3,
        "hidden": 64,
        "tau": 2,
        "epsilon": 0.1,
        "cache": 0.3,
    }


def test_one_host_has_no_link_and_an_uneven_cluster_says_its_workers() -> None:
    alone = settings(NAMES, {"hosts": 1, "workers_per_host": 3}, (8, 8), {})
    assert not {"bandwidth", "latency_s", "tau", "cache"} & set(alone)
    assert settings(NAMES, PLACE | {"workers": 3}, (8, 8), {})["workers"] == 3


def test_a_cache_in_bytes_is_no_share() -> None:
    found = settings(NAMES, PLACE, (8, 8), {"cache": "2MiB"})
    assert found["cache_bytes"] == 2 * 2**20
    assert "cache" not in found


def test_what_is_beyond_is_told_in_words() -> None:
    requested = {"method.psc-gcn": 1.0, "graph.feed": 1.0, "tau": 3.0, "rate": 0.1, "epsilon": 0.5}
    seen = {"method.psc-gcn": (1.0, 1.0), "tau": (1.0, 2.0), "epsilon": (0.1, 0.1)}
    assert list(beyond(requested, seen, "papers")) == [
        "graph papers (never calibrated)",
        "tau 3 (calibrated: 1 to 2)",
        "rate 0.1 (never calibrated)",
        "epsilon 0.5 (calibrated: 0.1)",
    ]
    assert list(beyond(requested, {}, "papers")) == ["every setting (calibrated without runs)"]


def test_an_older_record_does_not_make_names_unseen() -> None:
    requested = {"method.psc-gcn": 1.0, "hosts": 2.0, "tau": 3.0, "rate": 0.1}
    assert list(beyond(requested, {"tau": (1.0, 2.0)}, "papers")) == [
        "method, model, graph, hosts, latency and cache (an older record without them; calibrate again)",
        "tau 3 (calibrated: 1 to 2)",
        "rate 0.1 (never calibrated)",
    ]
