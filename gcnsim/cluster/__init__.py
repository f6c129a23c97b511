"""Clusters: links and their names, topology and routes."""

from gcnsim.cluster.links import ALLREDUCES, RING, TREE, Link, LinkName, LinkSpec, Paths, Sockets
from gcnsim.cluster.topology import Cluster, build_cluster

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
