"""Clusters: links, topology and routes."""

from gcnsim.cluster.build import build_cluster
from gcnsim.cluster.links import ALLREDUCES, RING, TREE, Link, LinkSpec, Paths, Sockets
from gcnsim.cluster.topology import Cluster

__all__ = ["ALLREDUCES", "RING", "TREE", "Cluster", "Link", "LinkSpec", "Paths", "Sockets", "build_cluster"]
