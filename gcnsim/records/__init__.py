"""Files of what was measured: training runs, profiler traces, compute times, micro-benchmarks, calibrations."""
