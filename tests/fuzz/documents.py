"""Readers of documents that people write: scenarios, questions, prices, devices, and values on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gcnsim.api.question import read_base
from gcnsim.cli import main
from gcnsim.cli.outputs import scenario_files
from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import BANDWIDTH, FRACTION, NBYTES, SECONDS
from gcnsim.evidence.difference import read_answer
from gcnsim.evidence.published_facts import read_published
from gcnsim.hardware import devices, hosts, kind_described, links
from gcnsim.hardware.catalogue import _assumed, read_platform
from gcnsim.hardware.own_files import own_device, own_host
from gcnsim.hardware.pricing import PriceBook
from gcnsim.planning.sweep_axes import read_axis, read_condition
from gcnsim.planning.sweep_question import load_question, read_question
from gcnsim.records.trace_names import read_names
from gcnsim.scenario import load_scenario
from gcnsim.scenario.faults import read_injected
from gcnsim.scenario.load import read_knob
from gcnsim.scenario.question import given_options
from tests.fuzz.readers import Reader, file_named, put, shipped, text

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "gcnsim" / "data"

SCENARIO = """schema: gcnsim.scenario/1
name: fuzz
cluster: {gpus: 4, gpus_per_server: 2, device: t4, bandwidth: 15Gbps, latency: 20us, servers_per_rack: 2, payload: fp16}
workload: {dataset: reddit, model: gat, layers: 3, hidden: 64, heads: 2, norm: layer}
partition: {method: metis, seed: 3}
method: {name: psc-gcn, tau: 2, epsilon: 0.2, cache: 30%, sampler: uniform}
run: {iterations: 4, seed: 7}
faults:
  - {kind: slow-gpu, worker: 1, factor: 2.5}
  - {kind: pause, worker: 0, seconds: 2s}
"""

QUESTION = """schema: gcnsim.sweep/1
name: fuzz
base: {cluster: {gpus: 2, gpus_per_server: 1}, run: {iterations: 4}}
axes:
  cluster.bandwidth: 5Gbps,10Gbps
  method.name: [psc-gcn, pipegcn]
  method.tau: 0..3
  run.seed: linear(0, 8, 3)
where: [method.tau <= 2]
constraints: [fits]
interval: none
"""

_FIGURE = '{value: "%s", source: datasheet, reference: "datasheet", date: "2026-10"}'
DEVICE = f"""title: "My GPU"
kind: gpu
link: pcie4-x16
memory: {_FIGURE % "24GB"}
memory_bandwidth: {_FIGURE % "600GB/s"}
flops_fp32: {_FIGURE % "30TFLOP/s"}
spmm_efficiency: {{value: "55%", source: assumed, low: "40%", high: "70%", reference: "guess", date: "2026-10"}}
"""

HOST = f"""title: "My server"
device: rtx-4090
network: infiniband-hdr
pcie: pcie4-x16
gpus: {_FIGURE.replace('"%s"', "4")}
nic: {_FIGURE % "200Gbps"}
cores: {_FIGURE.replace('"%s"', "64")}
memory_bandwidth: {{value: "200GB/s", source: assumed, low: "100GB/s", high: "300GB/s", reference: "x", date: "2026"}}
message_s: {_FIGURE % "0s"}
gpudirect: {{value: true, source: datasheet, reference: "datasheet", date: "2026-10"}}
"""

PRICES = """- {device: t4, instance: our-server, gpus: 4, price: "1.4USD/h", source: "contract 7", date: "2026-03"}
- {device: t4, instance: ours, gpus: 4, price: "0.9USD/h", pricing: spot, source: "contract 7", date: "2026-03"}
"""

NAMES = """schema: gcnsim.trace-names/1
iteration: ProfilerStep
names:
  aggregate: ['my_sums*', 'draw']
  ignore: ['python_function*']
"""


def _answers(home: Path) -> None:
    """A result and an answer, as their commands print them."""
    put(home / "s.yaml", "schema: gcnsim.scenario/1\ncluster: {gpus: 2, gpus_per_server: 1}\nrun: {iterations: 2}\n")
    requested = (["simulate", str(home / "s.yaml")], ["what-if", "--gpus", "2", "--method", "full-graph"])
    for number, words in enumerate(requested):
        content = StringIO()
        with redirect_stdout(content):
            assert main([*words, "--json"]) == 0
        put(home / str(number) / "told.json", content.getvalue())
    (home / "s.yaml").unlink()


def _options(read: Callable[[str], object]) -> Callable[[Path], object]:
    """A reader of what an option takes, a value a line; lines that are no UTF-8 text no shell hands over."""

    def reads(folder: Path) -> None:
        given = (folder / "option.txt").read_bytes().decode("utf-8", "surrogateescape")
        for line in given.split("\n")[:20]:
            read(line)

    return reads


def _axis(line: str) -> object:
    path, _, values = line.partition("=")
    return read_axis(path, values, "--axis ")


def _units(line: str) -> None:
    quantity, _, value = line.partition("=")
    known = {"bandwidth": BANDWIDTH, "seconds": SECONDS, "memory": NBYTES, "share": FRACTION}
    known.get(quantity, SECONDS).parse(value)


def _device(folder: Path) -> object:
    """Not by the catalogue, which reads a file once."""
    return own_device(str(folder / "d.yaml"), _assumed(), links(), hosts())


def _host(folder: Path) -> object:
    """As a device; what the file is of is told by its name too."""
    path = str(folder / "h.yaml")
    return kind_described(path), own_host(path, _assumed(), devices(), links())


def _address(query: str) -> object:
    from gcnsim.dashboard.state import read_address

    return read_address(query)


def _form(query: str) -> None:
    from gcnsim.dashboard.pages.forms import FORMS, read

    for form in FORMS:
        with suppress(ScenarioError):  # each has fields of its own
            read(form, query)


def _question(line: str) -> None:
    """As of a program: files may be opened in an empty folder only."""
    from gcnsim.dashboard.api import asked, document_of
    from gcnsim.dashboard.files import Files
    from gcnsim.dashboard.work import ASKED

    with TemporaryDirectory() as place:
        files = Files(Path(place), Path(place))
        for kind in ASKED.values():
            given_options(kind, asked(kind, document_of(line.encode("utf-8", "replace")), files))


OPTIONS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "option --inject": (
        lambda item: read_injected([item]),
        ("pause:worker=0,seconds=2s", "slow-link:link=nic0,factor=2", "jitter:on=sampling,cv=0.2"),
    ),
    "option --set of a method": (read_knob, ("method.tau=2", "method.epsilon=0.2,0.3", "method.cache=30%")),
    "option --axis": (_axis, ("cluster.bandwidth=5Gbps,10Gbps", "method.tau=0..3", "run.seed=linear(0, 8, 3)")),
    "option --where": (
        lambda item: read_condition(item, "--where"),
        ("method.tau <= 2", "cluster.gpus in 2,4", "method.name == psc-gcn"),
    ),
    "quantities": (_units, ("bandwidth=15Gbps", "seconds=20us", "memory=16GB", "share=30%")),
    "address of a form": (_form, ("?runs=a,b&calibration=c.json", "?plan=x&budget=3")),
    "question of a program": (
        _question,
        (
            '{"gpus": [2, 4], "method": "psc-gcn", "epsilon": 0.1, "bandwidth": "15Gbps", "price": "t4=1USD/h"}',
            '{"iterations_needed": {"pipegcn": 300}, "overrides": ["cluster.devices=[t4, a10g]"], "electricity": "0"}',
        ),
    ),
    "address of a page": (
        _address,
        ("?gpus=4&bandwidth=15&methods=psc-gcn,pipegcn&tau=2", "?dataset=yelp&epsilon=0.2&cache=30"),
    ),
}


def readers() -> Iterator[Reader]:
    """All of this file."""
    pages = sorted((ROOT / "scenarios").glob("*.yaml"))[:3]
    yield Reader(
        "scenario",
        text("s.yaml", SCENARIO, *(page.read_text(encoding="utf-8") for page in pages)),
        lambda folder: (
            scenario_files(str(folder / "s.yaml")),
            load_scenario(folder / "s.yaml"),
            read_base(folder / "s.yaml"),
        ),
    )
    yield Reader(
        "question of a sweep",
        text("q.yaml", QUESTION),
        lambda folder: read_question({k: v for k, v in load_question(folder / "q.yaml").items() if k != "schema"}),
    )
    platforms = sorted((DATA / "platforms").glob("*.yaml"))[:2]
    yield Reader("platform", shipped("p.yaml", *platforms), file_named(read_platform, "p.yaml"))
    yield Reader("own device", text("d.yaml", DEVICE), _device)
    yield Reader("own host", text("h.yaml", HOST), _host)
    yield Reader("prices", text("p.yaml", PRICES), lambda folder: PriceBook.of(file=str(folder / "p.yaml")))
    yield Reader("names of a trace", text("n.yaml", NAMES), file_named(read_names, "n.yaml"))
    published = sorted((DATA / "published").glob("*.yaml"))
    smallest = min(published, key=lambda item: item.stat().st_size)
    yield Reader("published facts", shipped("p.yaml", smallest), read_published)
    yield Reader("answer", _answers, lambda folder: read_answer(str(folder / "told.json"), "a"))
    for name, (read, lines) in OPTIONS.items():
        yield Reader(name, text("option.txt", *lines), _options(read))
