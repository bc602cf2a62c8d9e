"""Plain facts: findings about files, and values of methods."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something wrong with a file: the rule that is broken, and where."""

    rule: str
    severity: str
    path: str
    offset: int | None
    message: str
    code: str | None


class Value(NamedTuple):
    """An input or output of a method.

    `kind` is "tensor", "int", "float", "bool", "str", "none", or the kind of a list. Sizes of a tensor are upper bounds if
    it is `dynamic`. `value` is the number or text that the program was traced with.
    """

    kind: str
    dtype: str | None
    shape: tuple[int, ...] | None
    dim_order: tuple[int, ...] | None
    dynamic: bool
    name: str | None
    value: int | float | bool | str | None
