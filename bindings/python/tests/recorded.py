"""Recorded runs: inputs and outputs in safetensors files, as the corpus has them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

import edgepack

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip

#: Tolerances by element type, relative and absolute: those of `edgepack check`.
TOLERANCES = {"float64": (1e-3, 1e-4), "float32": (1e-3, 1e-4), "float16": (1e-2, 1e-2), "bfloat16": (1e-2, 1e-2)}


def read(path: Path) -> dict[str, Any]:
    """The tensors of a file; those of bfloat16 have their name and bits."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors: dict[str, Any] = {}
    for key, info in header.items():
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        if info["dtype"] == "BF16":
            tensors[key] = edgepack.RawTensor("bfloat16", info["shape"], bytearray(data[begin:end]))
        else:
            flat = np.frombuffer(data[begin:end], _DTYPES[info["dtype"]])
            tensors[key] = flat.reshape(info["shape"]).copy()
    return tensors


def source(path: Path) -> str | None:
    """Who computed the outputs: "executorch" or PyTorch."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]).get("__metadata__", {}).get("source")


def runs(path: Path) -> list[tuple[str, dict[int, Any], dict[int, Any]]]:
    """Runs of a file in order: method, inputs and outputs by number."""
    found: dict[tuple[str, int], tuple[dict[int, Any], dict[int, Any]]] = {}
    for key, tensor in read(path).items():
        method, run, side, index = key.rsplit(".", 3)
        sides = found.setdefault((method, int(run)), ({}, {}))
        sides[side == "out"][int(index)] = tensor
    return [(method, *sides) for (method, _), sides in sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))]


def argument(given: Any, wanted: edgepack.Value) -> Any:
    """A recorded input as the method takes it: numbers of 0-d tensors, `None` for what is not there."""
    if given is None or wanted.kind == "tensor":
        return given
    if wanted.kind == "str":
        return wanted.value
    return given.item()


def floats(value: Any) -> tuple[str, np.ndarray]:
    """The name of the element type, and the elements as doubles if they are floats."""
    if isinstance(value, edgepack.RawTensor):
        assert value.dtype == "bfloat16"
        bits = value.words().astype(np.uint32) << 16
        return value.dtype, bits.view(np.float32).astype(np.float64)
    value = np.asarray(value)
    if value.dtype.name == "bfloat16":
        return "bfloat16", value.astype(np.float64)
    return value.dtype.name, value


def check(have: Any, want: Any) -> None:
    """Fails unless an output is as it was recorded."""
    if want is None:
        assert have is None
        return
    (have_type, have), (want_type, want) = floats(have), floats(want)
    assert have_type == want_type
    assert have.shape == want.shape
    if want_type in TOLERANCES:
        rtol, atol = TOLERANCES[want_type]
        np.testing.assert_allclose(have, want, rtol, atol, equal_nan=True)
    elif want_type.startswith("complex"):
        np.testing.assert_allclose(have, want, 1e-4, 1e-5, equal_nan=True)
    else:
        np.testing.assert_array_equal(have, want)


def data_files(program: Path) -> list[Path]:
    """The data files next to a program."""
    return sorted(program.parent.glob(f"{program.stem}.*.ptd"))
