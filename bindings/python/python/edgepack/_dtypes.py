"""Types of elements by name. NumPy has most of them, `ml_dtypes` the small floats; the others have a name and bytes alone."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Names that NumPy itself knows.
NATIVE = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)

#: Names that `ml_dtypes` adds, if it is installed.
SMALL = frozenset("bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz".split())


def dtype(name: str) -> np.dtype[Any] | None:
    """The type of this name, or `None` if there is none here."""
    if name in NATIVE:
        return np.dtype(name)
    if name in SMALL:
        try:
            import ml_dtypes
        except ImportError:
            return None
        return np.dtype(getattr(ml_dtypes, name))
    return None


def dtypes(names: list[str]) -> list[np.dtype[Any] | None]:
    """The types of many names."""
    return [dtype(name) for name in names]
