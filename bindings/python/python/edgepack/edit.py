"""Files taken apart and put together. Everything takes a path, bytes or an object with `read`, and returns bytes that were
verified; arrays are of any library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _edgepack
from ._command import Source

__all__ = ["Split", "data_file", "diff", "join", "patch", "split"]


class Split(NamedTuple):
    """A program, the data file that it now needs, and the names of what was moved."""

    program: bytes
    data: bytes
    names: list[str]


def split(program: Source, *, matching: str | None = None, named: bool = False) -> Split:
    """Moves constants of a program into a data file: those whose name matches the pattern, or all; with `named` also the data
    that delegates find by key."""
    return Split(*_edgepack.split(program, matching=matching, named=named))


def join(program: Source, data: Source | Sequence[Source]) -> bytes:
    """Moves what is in data files into the program."""
    several = list(data) if isinstance(data, (list, tuple)) else [data]
    return _edgepack.join(program, several)


def patch(file: Source, tensors: Mapping[str, Any]) -> bytes:
    """Gives tensors of a program or data file other elements, of the same type and shape; everything else stays in place."""
    return _edgepack.patch(file, dict(tensors))


def data_file(tensors: Mapping[str, Any]) -> bytes:
    """Makes a data file of named arrays."""
    return _edgepack.data_file(dict(tensors))


def diff(first: Source, second: Source, **options: Any) -> dict[str, Any]:
    """Differences of two files, as `edgepack.diff`."""
    from . import diff as compare

    return compare(first, second, **options)
