"""Mini-batches: what the systems that train them share. A batch is drawn, loaded and trained; see `worker`."""
