"""The engine in flat arrays: plain Python that can also be compiled."""

from typing import Final

NEEDED: Final = ("memcpy", "memmove", "memset")
"""C functions that compilers call implicitly; an object file may need no others."""
