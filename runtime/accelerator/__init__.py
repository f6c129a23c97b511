"""Workers on GPUs that are not there: every kernel and copy is a wait of the length that the cost laws give.

Kernels may take the lengths that were measured on such a GPU instead (`runtime.measure`).

Threads, messages, rings of slots and the all-reduce are the runtime's own and really run; nothing is computed. What
such a run leaves is a ground truth for the simulator's schedule of workers on GPUs: the lengths of kernels are given,
what follows from them is measured (docs/emulation.md).
"""
