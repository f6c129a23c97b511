"""Many settings, one answer: what-if, recommendation, search for a machine, sweeps, and alternatives."""
