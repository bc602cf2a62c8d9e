"""Packages of TVM's Model Library Format."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _command
from ._command import Source

__all__ = ["run"]


def run(
    package: Source, inputs: Sequence[Any], *, module: str | None = None, allow_native_code: bool = False
) -> list[np.ndarray[Any, Any]]:
    """Runs a module of a package once: compiles its C code and calls it, in a process of its own where that is possible.

    That code has all rights of this process, so it is run only with `allow_native_code=True`; without, it is a `RunError`.
    """
    with tempfile.TemporaryDirectory(prefix="edgepack") as folder, _command.files(package) as (paths, stdin):
        given = []
        for index, array in enumerate(inputs):
            name = os.path.join(folder, f"in{index}.npy")
            np.save(name, np.ascontiguousarray(array), allow_pickle=False)
            given.append(f"{index}={name}")
        outputs = os.path.join(folder, "outputs.npz")
        line = ["run", paths[0], "--outputs", outputs]
        line += ["--inputs", *given] if given else []
        line += _command.options({"module": module, "allow_native_code": allow_native_code})
        status, _, err = _command.run(line, stdin)
        if status != 0:
            raise _command.failure(status, _command._complaint(err))
        with np.load(outputs, allow_pickle=False) as found:
            return [found[name] for name in found.files]
