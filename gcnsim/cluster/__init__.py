"""Clusters: links and their names, topology and routes."""

from gcnsim.cluster.build import build_cluster
from gcnsim.cluster.link_names import LinkName
from gcnsim.cluster.links import ALLREDUCES, RING, TREE, Link, LinkSpec, Paths, Sockets
from gcnsim.cluster.topology import Cluster

__all__ = [
    "ALLREDUCES",
    "RING",
    "TREE",
    "Cluster",
    "Link",
    "LinkName",
    "LinkSpec",
    "Paths",
    "Sockets",
    "build_cluster",
]
