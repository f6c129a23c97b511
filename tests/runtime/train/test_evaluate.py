"""Scores against scikit-learn's, and training with several labels per node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.core.streams import stream
from runtime.train.evaluate import Scores
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.jobs import trained
from tests.runtime.reduce_jobs import scored
from tests.runtime.train.test_equality import close, same_run, whole

CLASSES = 5


def masks_of(nodes: int, *, without: str = "") -> dict[str, BoolArray]:
    place = stream(8, "masks").permutation(nodes)
    parts = dict(zip(("train", "val", "test"), np.split(place, [60, 85]), strict=True))
    return {name: np.isin(np.arange(nodes), ids) & (name != without) for name, ids in parts.items()}


def written(case: Case, path: Path, labels: AnyArray, masks: dict[str, BoolArray]) -> str:
    """The small graph with other labels and masks, as a file."""
    arrays: dict[str, Any] = {
        "indptr": case.graph.indptr,
        "indices": case.graph.indices,
        "x": case.problem.features.numpy().astype(np.float32),
        "labels": labels,
        **{f"{name}_mask": mask.astype(np.uint8) for name, mask in masks.items()},
    }
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture(scope="module")
def several(case: Case) -> AnyArray:
    """Labels of which each class holds for a third of the nodes; some nodes have none."""
    return (stream(8, "several").random((case.graph.nodes, CLASSES)) < 0.33).astype(np.int8)


def gathered(content: list[tuple[Scores, AnyArray, AnyArray]], nodes: int) -> AnyArray:
    logits = np.full((nodes, content[0][2].shape[1]), np.nan)
    for _, inner, rows in content:
        logits[inner] = rows
    return logits


@pytest.mark.parametrize("workers", [1, 3])
def test_accuracy(crew: Crew, case: Case, options: MakeOptions, tmp_path: Path, workers: int) -> None:
    from sklearn.metrics import accuracy_score

    labels = case.problem.labels.numpy()
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "one.npz", labels.astype(np.int16), masks)
    content = crew.run(workers, scored, options(graph=path, workers=workers))
    text = gathered(content, case.graph.nodes).argmax(1)
    assert np.unique(text).size > 1
    for scores, _, _ in content:
        for name, mask in masks.items():
            assert getattr(scores, name) == pytest.approx(accuracy_score(labels[mask], text[mask]), abs=1e-12)


@pytest.mark.parametrize("workers", [1, 4])
def test_micro_f1_where_nodes_may_have_several_labels(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, workers: int
) -> None:
    from sklearn.metrics import f1_score

    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "many.npz", several, masks)
    content = crew.run(workers, scored, options(graph=path, workers=workers))
    text = gathered(content, case.graph.nodes) > 0
    assert 0.1 < text.mean() < 0.9
    for scores, _, _ in content:
        for name, mask in masks.items():
            wanted = f1_score(several[mask], text[mask], average="micro")
            assert getattr(scores, name) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("without", ["val", "test"])
def test_a_set_without_nodes_has_no_score(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, without: str
) -> None:
    masks = masks_of(case.graph.nodes, without=without)
    for labels in (case.problem.labels.numpy().astype(np.int16), several):
        path = written(case, tmp_path / f"{labels.ndim}.npz", labels, masks)
        for scores, _, _ in crew.run(2, scored, options(graph=path, workers=2)):
            assert getattr(scores, without) is None
            assert all(getattr(scores, name) is not None for name in masks if name != without)


def entropy(logits: AnyArray, labels: AnyArray, train: BoolArray) -> float:
    """Binary cross-entropy summed over classes, its mean over training nodes."""
    own: FloatArray = logits[train]
    each = np.logaddexp(0.0, own) - labels[train] * own
    return float(each.sum() / np.count_nonzero(train))


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_several_labels_train_alike_on_three_workers_and_one(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, model: str
) -> None:
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "many.npz", several, masks)
    alone = crew.run(1, trained, options(graph=path, workers=1, model=model))
    three = crew.run(3, trained, options(graph=path, workers=3, model=model))
    if model == "gat":
        # Gradients of its target scores cancel to nothing here: only rounding would be compared.
        close(np.array(three[0].losses), np.array(alone[0].losses), "losses")
        close(whole(three, case.graph.nodes), whole(alone, case.graph.nodes), "outputs")
    else:
        same_run(three, alone, case.graph.nodes)
    assert alone[0].losses[-1] < alone[0].losses[0]
    still = crew.run(3, trained, options(graph=path, workers=3, model=model, lr=0.0, iterations=2))
    wanted = entropy(whole(still, case.graph.nodes), several, masks["train"])
    close(np.array(still[0].losses), np.array([wanted, wanted]), "loss")


@pytest.mark.parametrize(
    ("method", "knobs"), [("pipegcn-gf", {}), ("psc-gcn", {"epsilon": 0.5, "tau": 2}), ("bns-gcn", {"rate": 0.5})]
)
def test_several_labels_train_with_every_method(
    crew: Crew,
    case: Case,
    options: MakeOptions,
    several: AnyArray,
    tmp_path: Path,
    method: str,
    knobs: dict[str, Any],
) -> None:
    path = written(case, tmp_path / "many.npz", several, masks_of(case.graph.nodes))
    content = crew.run(2, trained, options(method, knobs, graph=path, workers=2, iterations=15))
    assert all(rank.losses == content[0].losses for rank in content)
    assert content[0].losses[-1] < content[0].losses[0]


def test_labels_that_are_shares_count_in_the_loss_as_they_are(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path
) -> None:
    soft = (several * 0.75).astype(np.float32)
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "soft.npz", soft, masks)
    content = crew.run(2, trained, options(graph=path, workers=2, lr=0.0, iterations=1))
    wanted = entropy(whole(content, case.graph.nodes), soft, masks["train"])
    close(np.array(content[0].losses), np.array([wanted]), "loss")
