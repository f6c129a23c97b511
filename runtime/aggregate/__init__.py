"""Local sums over neighbours: sparse products with a cached transpose, by plain torch or by DGL."""

from runtime.aggregate.attention import attention_sum
from runtime.aggregate.libraries import matrix_kind
from runtime.aggregate.matrix import Matrix, PlainMatrix, Rows

__all__ = ["Matrix", "PlainMatrix", "Rows", "attention_sum", "matrix_kind"]
