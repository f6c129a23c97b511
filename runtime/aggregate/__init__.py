"""Local sums over neighbours: sparse products with a cached transpose, by torch, by compiled kernels or by DGL."""

from runtime.aggregate.attention import attention_sum
from runtime.aggregate.matrix import Matrix, PlainMatrix, Rows, kept_for_compute
from runtime.aggregate.numba_matrix import NumbaMatrix, matrix_kind
