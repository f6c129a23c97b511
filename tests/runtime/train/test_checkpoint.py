"""A run that goes on from a checkpoint is the run that was never interrupted, bit for bit; any other is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from gcnsim.core.errors import FileError
from gcnsim.core.streams import stream
from runtime.options import Options
from runtime.record import read_run
from runtime.train.checkpoint import (
    WORKERS,
    complete,
    read_checkpoint,
    set_aside,
    starting_point,
    write_part,
)
from runtime.train.earlier_run import STATE, latest
from tests.runtime.conftest import MakeOptions, small_graph
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import at_odds, one_bit_off, ran, refused, spoilt

OWNED = {"dropout_order": "dropout-first"}
SAGE = {"model": "graphsage"}
DRAWN = {"epsilon": 0.3, "refresh": 3, "cache": "30%"}
RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "full-graph": ("full-graph", {}, {}),
    "pipegcn features": ("pipegcn", {"cold_start": "features"}, {"dropout_order": "dropout-first"}),
    "pipegcn-g": ("pipegcn-g", {"gamma": 0.7}, {"optimizer": "sgd"}),
    "pipegcn-gf": ("pipegcn-gf", {"gamma": 0.7}, {"model": "gat"}),
    "psc-gcn tau 2": ("psc-gcn", DRAWN | {"tau": 2}, {}),
    "psc-gcn sage": ("psc-gcn", DRAWN | {"tau": 2, "estimator": "self-normalised"}, {"model": "graphsage"}),
    "psc-gcn compiled": ("psc-gcn", DRAWN | {"tau": 1}, {"aggregator": "numba"}),
    "psc-gcn uniform": ("psc-gcn", DRAWN | {"tau": 2, "sampler": "uniform", "cache": "0%"}, {"preaggregate": True}),
    "psc-gcn tau 3 whole": ("psc-gcn", {"tau": 3, "epsilon": 1.0, "cache": "30%"}, {}),
    "bns-gcn": ("bns-gcn", {"rate": 0.3}, {"norm": "layer"}),
    "cagnet-1d": ("cagnet-1d", {}, {"preaggregate": True} | OWNED),
    "cagnet-1.5d": ("cagnet-1.5d", {"replication": 3}, OWNED),
    "sancus": ("sancus", {"warm_iterations": 3}, OWNED),
    "sancus gap": ("sancus", {"stale_test": "gap", "threshold": 0.2, "warm_iterations": 0}, OWNED | SAGE),
    "sancus backward": ("sancus", {"warm_iterations": 2, "skip_backward": "yes"}, OWNED),
}

Going = Callable[..., Options]


@pytest.fixture
def going(options: MakeOptions, tmp_path: Path) -> Going:
    """Options of a run of 12 iterations with dropout that saves every 5, into the folder `out`."""

    def make(method: str = "full-graph", knobs: dict[str, Any] | None = None, out: str = "run", **fields: Any) -> Any:
        usual = {"iterations": 12, "workers": 3, "dropout": 0.3, "dtype": "float32", "record": True, "eval_every": 4}
        usual |= {"checkpoint_every": 5, "out": str(tmp_path / out)}
        return options(method, knobs, **(usual | fields))

    return make


@pytest.mark.parametrize("name", RUNS)
def test_going_on_is_the_same_to_the_bit(crew: Crew, going: Going, tmp_path: Path, name: str) -> None:
    method, knobs, fields = RUNS[name]
    whole = crew.run(3, ran, going(method, knobs, **fields))
    assert len({run.weights for run in whole}) == 1
    saved = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in saved.iterdir()) == ["000005", "000010"]
    again = crew.run(3, ran, going(method, knobs, out="again", resume=str(saved / "000005"), **fields))
    assert [run.begun for run in again] == [5, 5, 5]
    assert again[0].losses == {t: loss for t, loss in whole[0].losses.items() if t >= 5}
    assert {run.weights for run in again} == {whole[0].weights}
    assert [run.drawn for run in again] == [run.drawn for run in whole], "rows asked for, in the whole run"
    first, second = (read_run(tmp_path / name) for name in ("run", "again"))
    assert (second.record.iterations, second.record.finished) == (12, True)
    assert second.record.accuracy == first.record.accuracy
    assert all(second.record.bytes[kind] == first.record.bytes[kind] for kind in ("rows", "gradients"))
    assert [(row.iteration, row.loss) for row in second.iterations] == [
        (row.iteration, row.loss) for row in first.iterations
    ]


@pytest.mark.parametrize("done", [1, 2])
def test_going_on_before_the_first_rows_have_arrived(crew: Crew, going: Going, tmp_path: Path, done: int) -> None:
    knobs = DRAWN | {"tau": 3}
    whole = crew.run(3, ran, going("psc-gcn", knobs, checkpoint_every=0))
    crew.run(3, ran, going("psc-gcn", knobs, out="short", iterations=done, checkpoint_every=done))
    again = crew.run(3, ran, going("psc-gcn", knobs, out="short", resume=str(tmp_path / "short"), checkpoint_every=0))
    assert again[0].begun == done
    assert again[0].losses == {t: loss for t, loss in whole[0].losses.items() if t >= done}
    assert again[0].weights == whole[0].weights


def test_a_single_worker_goes_on_too(crew: Crew, going: Going, tmp_path: Path) -> None:
    knobs = DRAWN | {"tau": 2}
    whole = crew.run(1, ran, going("psc-gcn", knobs, workers=1))
    requested = going("psc-gcn", knobs, workers=1, out="more", resume=str(tmp_path / "run/checkpoints/000005"))
    again = crew.run(1, ran, requested)
    assert again[0].weights == whole[0].weights


@pytest.fixture(scope="module")
def made(crew: Crew, options: MakeOptions, tmp_path_factory: pytest.TempPathFactory) -> tuple[Options, Path]:
    """A short run of two workers that saved after iterations 2 and 4, its options and its folder; not to be changed."""
    folder = tmp_path_factory.mktemp("made") / "run"
    knobs = {"tau": 1, "epsilon": 0.5, "refresh": 2}
    requested = options("psc-gcn", knobs, workers=2, iterations=4, record=True, checkpoint_every=2, out=str(folder))
    crew.run(2, ran, requested)
    return requested, folder


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"model": "graphsage"}, "made with --model 'gcn', but this run has 'graphsage'"),
    "width": ({"hidden": 7}, "made with --hidden 6, but this run has 7"),
    "seed": ({"seed": 3}, "made with --seed 0, but this run has 3"),
    "optimizer": ({"optimizer": "sgd"}, "made with --optimizer 'adam', but this run has 'sgd'"),
    "dropout": ({"dropout": 0.1}, "made with --dropout 0.0, but this run has 0.1"),
    "method": ({"method": "pipegcn", "knobs": {}}, "made with --method 'psc-gcn', but this run has 'pipegcn'"),
    "knob": ({"knobs": {"tau": 2, "epsilon": 0.5, "refresh": 2}}, "made with --tau 1, but this run has 2"),
    "kernels": ({"aggregator": "numba"}, "made with --aggregator 'plain', but this run has 'numba'"),
    "workers": ({"workers": 3}, "made with --workers 2, but this run has 3"),
    "partition": ({"partition_seed": 1}, "made with partition '"),
    "graph": ({"graph": "other"}, "made with graph '"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_another_run_is_refused(
    crew: Crew, options: MakeOptions, made: tuple[Options, Path], tmp_path: Path, what: str
) -> None:
    changes, text = OTHERS[what]
    usual: dict[str, Any] = {"method": "psc-gcn", "knobs": {"tau": 1, "epsilon": 0.5, "refresh": 2}, "workers": 2}
    if what == "graph":
        changes = {"graph": str(_another_graph(tmp_path / "other.npz"))}
    requested = options(**(usual | {"iterations": 6, "resume": str(made[1]), "out": str(tmp_path / "run")} | changes))
    content = crew.run(requested.workers, refused, requested)
    assert len(set(content)) == 1
    assert content[0].startswith(f"{made[1]}/checkpoints/000004: {text}")
    assert "\n" not in content[0]
    assert not (tmp_path / "run").exists()


def _another_graph(path: Path) -> Path:
    generator = stream(6, "other graph")
    graph = small_graph(120, 360, 6)
    labels = generator.integers(0, 4, graph.nodes)
    x = generator.standard_normal((graph.nodes, 7)).astype(np.float32)
    np.savez(path, allow_pickle=False, indptr=graph.indptr, indices=graph.indices, x=x, labels=labels)
    return path


def test_fewer_iterations_than_are_done_are_refused(
    crew: Crew, options: MakeOptions, made: tuple[Options, Path]
) -> None:
    requested = options("psc-gcn", {"tau": 1, "epsilon": 0.5, "refresh": 2}, iterations=3, resume=str(made[1]))
    content = crew.run(2, refused, requested)
    assert content[0] == f"--iterations: 3, but 4 are done in {made[1]}/checkpoints/000004; allowed: 4 or more"


def test_a_finished_run_that_goes_on_is_left_as_it_is(crew: Crew, going: Going, tmp_path: Path) -> None:
    first = crew.run(2, ran, going(workers=2, iterations=5))
    folder = tmp_path / "run"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = crew.run(2, ran, going(workers=2, iterations=5, resume=str(folder)))
    assert (again[0].begun, again[0].losses, again[0].weights) == (5, {}, first[0].weights)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_workers_that_find_different_checkpoints_are_told(
    crew: Crew, options: MakeOptions, made: tuple[Options, Path], tmp_path: Path
) -> None:
    knobs = {"tau": 1, "epsilon": 0.5, "refresh": 2}
    requested = options("psc-gcn", knobs, iterations=6, resume=str(made[1]), out=str(tmp_path / "run"))
    content = crew.run(2, at_odds, requested, str(made[1] / "checkpoints" / "000002"))
    assert content[0] == content[1]
    assert "worker 0 finds a checkpoint after 4 iterations, worker 1 after 2; all workers must share" in content[0]


def test_replicas_that_differ_in_one_bit_are_found(crew: Crew, going: Going) -> None:
    content = crew.run(2, one_bit_off, going(workers=2, iterations=2, dtype="float32"))
    assert content == [
        "the weights of worker 1 differ from those of worker 0",
        "the weights of worker 0 differ from those of worker 1",
    ]


BAD = [
    (6, float("nan"), 2, "000006", "iteration 7: the loss is nan; first in the output of layer 0, worker 0"),
    (5, float("nan"), 2, "000004", "iteration 5: its step left values in "),
    (5, 3e38, 2, "000004", "iteration 6: the loss is "),
    (11, float("inf"), 4, "000008", "iteration 11: its step left values in "),
]


@pytest.mark.parametrize(("at", "value", "every", "good", "message"), BAD, ids=["loss", "saving", "saved", "end"])
def test_weights_that_are_no_numbers_never_become_the_last_checkpoint(
    crew: Crew, going: Going, tmp_path: Path, at: int, value: float, every: int, good: str, message: str
) -> None:
    """After the step that spoils them the next loss tells; or the saving, if it comes first; or the end of the run."""
    content = crew.run(2, spoilt, going(workers=2, checkpoint_every=every), at, value)
    path = latest(tmp_path / "run" / "checkpoints")
    assert path == tmp_path / "run" / "checkpoints" / good
    assert len(set(content)) == 1
    assert content[0].startswith(message)
    assert content[0].endswith(f"; the last good checkpoint is {path}")
    again = crew.run(2, ran, going(workers=2, resume=str(tmp_path / "run"), checkpoint_every=0))
    assert (again[0].begun, sorted(again[0].losses)) == (int(good), list(range(int(good), 12)))


@pytest.mark.parametrize("name", [STATE, "worker1.safetensors"])
@pytest.mark.parametrize("harm", ["cut", "bit", "gone"])
def test_a_damaged_checkpoint_is_refused_in_one_line(
    made: tuple[Options, Path], tmp_path: Path, name: str, harm: str
) -> None:
    place = Path(shutil.copytree(made[1] / "checkpoints" / "000004", tmp_path / "000004"))
    identity = json.loads((place / STATE).read_text())["identity"]
    assert read_checkpoint(place, 1, identity).done == 4
    path = place / name
    content = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1 if name != STATE else 0x80
        path.write_bytes(content if harm == "bit" else content[: len(content) // 2])
    with pytest.raises(FileError) as caught:
        read_checkpoint(place, 1, identity)
    text = "truncated or altered: " if name != STATE else "not a JSON document" if harm == "cut" else "not UTF-8 text"
    assert str(caught.value).startswith(f"{path}: {'cannot be read: No such file' if harm == 'gone' else text}")
    assert "\n" not in str(caught.value)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update(done=6), "altered: its sha256 is not that of its content"),
        (lambda state: state["notes"].update(best=[0.99, 0.99, 0.99]), "altered: its sha256"),
        (lambda state: state["notes"].update(best=[7.5, 0.9, 0.9]), "notes.best[0] is 7.5, wanted 1 or less; "),
        (lambda state: state["notes"].pop("best"), "has no notes.best; "),
        (lambda state: state.pop("sha256"), "has no sha256; not the state of a checkpoint, or one of an older version"),
        (lambda state: state.update(done="4"), 'done is "4", wanted integer; '),
        (lambda state: state.update(identity=[]), "identity is [], wanted object; "),
        (lambda state: state["parts"].__setitem__(0, "00"), 'parts[0] is "00", wanted text like ^[0-9a-f]{64}$; '),
    ],
)
def test_an_altered_state_is_refused(made: tuple[Options, Path], tmp_path: Path, change: Change, message: str) -> None:
    place = Path(shutil.copytree(made[1] / "checkpoints" / "000004", tmp_path / "000004"))
    state = json.loads((place / STATE).read_text())
    change(state)
    (place / STATE).write_text(json.dumps(state))
    with pytest.raises(FileError) as caught:
        read_checkpoint(place, 1, {})
    assert str(caught.value).startswith(f"{place / STATE}: {message}")


def _signed(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change worker 0's tensors of the checkpoint in `folder`, and make it whole again with their hash."""
    state = json.loads((folder / STATE).read_text())
    tensors = load_file(folder / "worker0.safetensors")
    change(tensors)
    digests = [write_part(folder.parent, state["done"], 0, tensors), *map(bytes.fromhex, state["parts"][1:])]
    complete(folder.parent, state["done"], state["identity"], state["notes"], digests)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("own.sent"), "its tensors are not those of this run: KeyError: 'sent'"),
        (lambda tensors: tensors.update({_weight(tensors): torch.zeros(1)}), "or of shape [1]; allowed: finite"),
        (lambda tensors: tensors[_weight(tensors)].fill_(torch.nan), "is not finite, or of shape"),
        (
            lambda tensors: tensors.update({"shared.weight.layers.9.bias": torch.zeros(1)}),
            "has layers.9.bias, which this model lacks; made by an older version",
        ),
    ],
)
def test_tensors_of_another_run_are_refused(
    crew: Crew, going: Going, tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], object], message: str
) -> None:
    crew.run(1, ran, going(workers=1, iterations=4, checkpoint_every=4))
    _signed(tmp_path / "run" / "checkpoints" / "000004", change)
    (content,) = crew.run(1, refused, going(workers=1, resume=str(tmp_path / "run"), checkpoint_every=0))
    assert content.startswith(f"{tmp_path / 'run' / 'checkpoints' / '000004'}: ")
    assert message in content
    assert "\n" not in content


def test_a_part_that_is_no_file_of_tensors_is_refused(made: tuple[Options, Path], tmp_path: Path) -> None:
    place = Path(shutil.copytree(made[1] / "checkpoints" / "000004", tmp_path / "000004"))
    state = json.loads((place / STATE).read_text())
    header = json.dumps({"a": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}).encode()
    enormous = len(header).to_bytes(8, "little") + header
    for content in ((place / "worker1.safetensors").read_bytes()[:100], enormous):
        (place / "worker1.safetensors").write_bytes(content)
        digests = [bytes.fromhex(state["parts"][0]), hashlib.sha256(content).digest()]
        complete(tmp_path, 4, state["identity"], state["notes"], digests)
        with pytest.raises(FileError, match=r"worker1\.safetensors: not a file of tensors: [^\n]*$"):
            read_checkpoint(place, 1, {})


def _weight(tensors: dict[str, torch.Tensor]) -> str:
    return next(name for name in sorted(tensors) if name.startswith("shared.weight."))


def _written(folder: Path, done: int) -> None:
    digest = write_part(folder, done, 0, {"own.x": torch.zeros(1)})
    complete(folder, done, {WORKERS: 1}, {"best": [None] * 3, "scores": [None] * 3, "norms": []}, [digest])


def test_an_unfinished_checkpoint_never_counts(made: tuple[Options, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made[1], tmp_path / "run"))
    write_part(folder / "checkpoints", 6, 0, {"own.x": torch.zeros(1)})
    question = made[0].asdict() | {"resume": str(folder), "knobs": {}}
    assert starting_point(Options(**question), folder) == folder / "checkpoints" / "000004"
    (folder / "checkpoints" / "000004" / STATE).unlink()
    assert starting_point(Options(**question), folder) == folder / "checkpoints" / "000002"
    (folder / "checkpoints" / "000002" / STATE).unlink()
    with pytest.raises(FileError, match=r"--resume: .* has no complete checkpoint; allowed: "):
        starting_point(Options(**question), folder)


def test_two_checkpoints_stay_and_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / STATE).write_text("{}")
    for done in (5, 999_999, 1_000_000, 1_000_001):
        _written(tmp_path, done)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1000000", "1000001", "notes"]
    assert latest(tmp_path) == tmp_path / "1000001"


def test_a_run_that_takes_another_turn_drops_what_lay_ahead(tmp_path: Path) -> None:
    for done in (8, 10, 9):
        _written(tmp_path, done)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000008", "000009"]


def test_a_new_run_sets_the_checkpoints_of_an_earlier_one_aside(crew: Crew, going: Going, tmp_path: Path) -> None:
    crew.run(2, ran, going(workers=2, iterations=10))
    crew.run(2, ran, going(workers=2, iterations=5, seed=1))
    saved = tmp_path / "run" / "checkpoints"
    assert [path.name for path in saved.iterdir()] == ["000005"]
    assert sorted(path.name for path in saved.with_name("checkpoints.old").iterdir()) == ["000005", "000010"]
    again = crew.run(2, ran, going(workers=2, out="more", resume=str(tmp_path / "run" / "checkpoints.old")))
    assert again[0].begun == 10
    set_aside(saved)
    set_aside(saved)
    assert not saved.exists()


def test_a_restart_goes_on_from_its_own_last_checkpoint(
    made: tuple[Options, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = made[0].asdict() | {"knobs": {}}
    own = tmp_path / "run"
    _written(own / "checkpoints", 3)
    assert starting_point(Options(**facts), own) is None, "a first start never looks"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert starting_point(Options(**facts), own) == own / "checkpoints" / "000003"
    options = Options(**(facts | {"resume": str(made[1])}))
    assert starting_point(options, own) == own / "checkpoints" / "000003"
    assert starting_point(options, tmp_path / "other") == made[1] / "checkpoints" / "000004"
    silent = Options(**(facts | {"record": False, "checkpoint_every": 0}))
    assert starting_point(silent, own) is None, "a run that saves nothing has none of its own"


def _of_an_older_version(folder: Path, aggregator: str) -> Path:
    """A checkpoint of one worker that names GraphSAGE's aggregator."""
    digest = write_part(folder, 4, 0, {"shared.weight": torch.zeros(1)})
    identity = {WORKERS: 1, "--model": "graphsage", "--sage-aggregator": aggregator}
    complete(folder, 4, identity, {"best": [None] * 3, "scores": [None] * 3, "norms": []}, [digest])
    found = latest(folder)
    assert found is not None
    return found


def test_an_older_graphsage_is_read_where_it_took_the_mean_and_refused_where_it_pooled(tmp_path: Path) -> None:
    assert read_checkpoint(_of_an_older_version(tmp_path / "mean", "mean"), 0, {"--model": "graphsage"}).done == 4
    place = _of_an_older_version(tmp_path / "pool", "pool")
    with pytest.raises(FileError) as caught:
        read_checkpoint(place, 0, {"--model": "graphsage"})
    assert str(caught.value) == (
        f"{place / STATE}: identity.--sage-aggregator: pool is not allowed; GraphSAGE takes the mean; allowed: mean"
    )
