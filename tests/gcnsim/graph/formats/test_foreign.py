"""Files of other tools: each is named in one line that says what to do."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import struct
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import load_graph

EDGES = b"0 1\n1 2\n2 0\n"
PAJEK = b"*vertices 2\n*edges\n1 2\n"
SAVED = struct.pack("<QQ", 0xDD2E4FF046B4A13F, 2) + bytes(40)


def _tar(**members: bytes) -> bytes:
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))
    return made.getvalue()


def _zip(**members: bytes) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("saved.bin", SAVED, "graphs of dgl.save_graphs, which only DGL reads; convert them as docs/files.md shows"),
        ("saved.txt", SAVED, "graphs of dgl.save_graphs"),
        ("x.txt.bz2", bz2.compress(EDGES), "compressed; unpack it first (bzip2 -dk x.txt.bz2)"),
        ("x.csv.xz", lzma.compress(EDGES), "compressed; unpack it first (xz -dk x.csv.xz)"),
        ("x.tar.bz2", bz2.compress(_tar(a_txt=EDGES)), "compressed; unpack it first (bzip2 -dk x.tar.bz2)"),
        (
            "net.csv.zip",
            _zip(nodes_csv=b"0", edges_csv=EDGES),
            "archive of nodes.csv, edges.csv; unpack it first (python -m zipfile -e net.csv.zip .) and give edges.csv",
        ),
        ("net.npz", _zip(a__README=b"", a__m_mtx=EDGES), "an archive of a/README, a/m.mtx; unpack it first"),
        (
            "net.tar.gz",
            gzip.compress(_tar(net__README=b"", net__out_net=EDGES)),
            "(python -m tarfile -e net.tar.gz .) and give net/out.net, renamed to end in .txt",
        ),
        ("net.tar", _tar(net__m_mtx=EDGES), "(python -m tarfile -e net.tar .) and give net/m.mtx"),
        ("g.graphml", b"<graphml/>", ".graphml is not read; networkx.write_edgelist(networkx.read_graphml(FILE)"),
        ("g.gml", b"graph []", "networkx.read_gml(FILE)"),
        ("g.net", PAJEK, "networkx.read_pajek(FILE)"),
        ("g.pt", pickle.dumps({}), "a pickle, which runs code when it is read and is never opened"),
        ("out.village", EDGES, "unknown graph format '.village'; known: "),
        ("out.net", EDGES, "; an edge list is read under a name that ends in .txt"),
        ("g.gr", EDGES, "; an edge list is read under a name that ends in .txt"),
    ],
)
def test_each_is_one_line_with_what_to_do(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_renamed_edge_list_is_read(tmp_path: Path) -> None:
    (tmp_path / "out.village.txt").write_bytes(EDGES)
    assert load_graph(tmp_path / "out.village.txt").nodes == 3
