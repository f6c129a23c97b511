"""Measuring parts of a workload one by one, alone on one device, by the code that trains them (`runtime.measure`)."""
