"""Workers on emulated GPUs: every kernel and copy is a wait of the length that the cost laws give.

Threads, messages, rings of slots and the all-reduce are the runtime's own and really run; nothing is computed. Such a
run is a ground truth for the simulator's schedule of workers on GPUs: the lengths of kernels are given, and their
consequences are measured (docs/emulation.md).
"""
