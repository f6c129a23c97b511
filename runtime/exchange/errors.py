"""What goes wrong between workers."""

from __future__ import annotations


class PeerError(ConnectionError):
    """Another worker did not answer: it died, hangs, or the network between fails. The message names it."""
