"""Mini-batches: the shared parts of systems that train them. A batch is sampled, loaded and trained; see `worker`."""
