"""Real multi-worker training of the methods that gcnsim predicts."""
