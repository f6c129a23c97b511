"""Local sums over neighbours: sparse products with a cached transpose, by plain torch or by DGL."""

from runtime.aggregate.attention import attention_sum
from runtime.aggregate.matrix import Matrix, PlainMatrix, Rows, matrix_kind

__all__ = ["Matrix", "PlainMatrix", "Rows", "attention_sum", "matrix_kind"]
