"""Clusters: links, topology and routes."""

from gcnsim.cluster.links import Link, LinkSpec, Paths
from gcnsim.cluster.topology import Cluster, build_cluster

__all__ = ["Cluster", "Link", "LinkSpec", "Paths", "build_cluster"]
