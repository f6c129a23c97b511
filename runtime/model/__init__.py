"""The models: layers, the network of them, and where their first weights come from."""

from runtime.model.network import Boundaries, Network
from runtime.model.weights import initialise, load_weights, save_weights

__all__ = ["Boundaries", "Network", "initialise", "load_weights", "save_weights"]
