"""A rate above what there is, is answered with a warning that names the likely mix-up."""

from __future__ import annotations

import pytest

import gcnsim
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.scenario.odd_rates import rate_warnings


def scenario(**cluster: object) -> Scenario:
    given = {"gpus": 8, "gpus_per_server": 8} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given}, "test")


P4D = {"host": "p4d.24xlarge", "device": "a100-40", "bandwidth": "400Gbps"}


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"device": "h100", "nvlink": "900GB/s"}, ("more than h100 has", "450 GB/s", "both directions")),
        ({"device": "v100-16", "nvlink": "300GB/s"}, ("150 GB/s", "both directions")),
        ({"device": "h100", "nvlink": "9000GB/s"}, ("more than h100 has", "added?")),
        ({"device": "a100-80", "nvlink": "2400GB/s"}, ("GB/s) for bits",)),
        ({"host": "g6.12xlarge", "device": "t4", "gpus": 4, "gpus_per_server": 4}, ("sold with l4, not t4",)),
        ({"device": "t4", "nvlink": "50GB/s"}, ("knows no NVLink of t4",)),
        (
            {"gpus": 4, "gpus_per_server": 2, "devices": ["a100-80", "rtx-4090"], "nvlink": "300GB/s"},
            ("knows no NVLink of rtx-4090",),
        ),
        (
            {"gpus": 4, "gpus_per_server": 2, "devices": ["h100", "v100-16"], "nvlink": "300GB/s"},
            ("more than v100-16 has",),
        ),
        ({"device": "t4", "bandwidth": "3200Gbps"}, ("one adapter carries (400Gbps", "all adapters of an instance")),
        ({"device": "t4", "bandwidth": "100GB/s"}, ("100 GB/s for 100 Gbps?",)),
        ({"device": "h100", "bandwidth": "6400Gbps"}, ("8 adapters carry, one a GPU",)),
        ({"link": "ethernet-25g", "bandwidth": "100Gbps"}, ("25Gbps, ethernet-25g",)),
        (P4D | {"bandwidth": "800Gbps"}, ("a p4d.24xlarge has", "4 adapters together", "both directions")),
        (P4D | {"gpus": 24, "bandwidth": "1200Gbps"}, ("all 3 servers added?",)),
        (P4D | {"bandwidth": "400GB/s"}, ("400 GB/s for 400 Gbps?",)),
        ({"figures": "pcie3-x16.bandwidth=32GB/s"}, ("2.03 times the data sheet's", "both directions")),
        ({"device": "h100", "figures": "h100.flops_fp16=1979TFLOP/s"}, ("with sparsity?",)),
        ({"host_memory": "900GB/s"}, ("more than the memory of a generic-16 moves",)),
    ],
)
def test_a_rate_above_what_there_is_names_the_mix_up(cluster: dict[str, object], words: tuple[str, ...]) -> None:
    (warning,) = rate_warnings([scenario(**cluster)])
    assert all(word in warning for word in words), warning
    assert "\n" not in warning


@pytest.mark.parametrize(
    "cluster",
    [
        {},
        {"bandwidth": "400Gbps"},
        {"device": "h100", "nvlink": "450GB/s"},
        {"device": "h100", "nvlink": "none"},
        {"device": "h100", "bandwidth": "3200Gbps"},
        {"device": "cpu-core"},
        P4D | {"nvlink": "300GB/s"},
        {"host": "p5.48xlarge", "device": "h100", "bandwidth": "3200Gbps"},
        {"figures": "pcie3-x16.bandwidth=12GB/s"},
        {"link": "infiniband-ndr", "bandwidth": "400Gbps"},
    ],
)
def test_what_there_is_raises_no_warning(cluster: dict[str, object]) -> None:
    assert list(rate_warnings([scenario(**cluster)])) == []


def test_the_warning_is_in_text_and_json() -> None:
    answer = gcnsim.what_if(
        device="h100", gpus=2, gpus_per_server=2, method="full-graph", iterations=2, processes=1,
        overrides=["cluster.nvlink=900GB/s"],
    )  # fmt: skip
    assert any("both directions" in warning for warning in answer.payload["provenance"]["warnings"])
    assert "Warnings" in str(answer)
