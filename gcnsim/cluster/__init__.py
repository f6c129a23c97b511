"""Clusters: links, topology and routes."""

from gcnsim.cluster.topology import Cluster, Link, LinkSpec, build_cluster

__all__ = ["Cluster", "Link", "LinkSpec", "build_cluster"]
