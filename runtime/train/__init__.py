"""Training: one worker from its options to its record. Nothing here needs torch until a worker starts."""
