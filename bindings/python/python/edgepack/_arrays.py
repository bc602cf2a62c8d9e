"""Arrays of any library, and tensors whose elements NumPy does not know.

No element is converted here: what is given with another type than a program wants is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _dtypes

#: Unsigned integers that stand for elements of so many bytes when they are copied.
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class RawTensor:
    """A tensor of elements that NumPy has no type for: name of the type, shape, strides in bytes, and bytes.

    Methods take it as an input and give it as an output. With `ml_dtypes` installed, `bfloat16` and the small floats are
    arrays instead.
    """

    __slots__ = ("dtype", "shape", "strides", "data")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: Any, strides: tuple[int, ...] | None = None) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self.data = memoryview(data).cast("B")
        itemsize = _itemsize(dtype)
        if strides is None:
            steps, step = [], itemsize
            for size in reversed(self.shape):
                steps.append(step)
                step *= max(size, 1)
            strides = tuple(reversed(steps))
        self.strides = tuple(strides)
        count = 1
        for size in self.shape:
            count *= size
        if len(self.data) != count * itemsize:
            raise ValueError(f"{len(self.data)} bytes of data for a tensor of {count * itemsize}")

    def words(self) -> np.ndarray[Any, Any]:
        """The elements as unsigned integers of their size; writable if the data are."""
        return np.ndarray(self.shape, _WORDS[_itemsize(self.dtype)], self.data, 0, self.strides)

    def __repr__(self) -> str:
        return f"RawTensor({self.dtype}, {self.shape})"


def _itemsize(name: str) -> int:
    known = {"bfloat16": 2, "bits16": 2, "complex32": 4, "qint32": 4}
    if name in _dtypes.NATIVE:
        return np.dtype(name).itemsize
    return known.get(name, 1)


def raw_tensor(name: str, shape: tuple[int, ...], strides: tuple[int, ...], data: Any) -> RawTensor:
    """A tensor over bytes that are there."""
    return RawTensor(name, shape, data, strides)


def array(given: Any) -> tuple[Any, str, list[int], str | None]:
    """An array, the name of its type, its shape; or the reason that it is none."""
    found, name, problem = _look(given)
    if problem is not None:
        return None, "", [], problem
    return found, name, list(found.shape), None


def _look(given: Any) -> tuple[Any, str, str | None]:
    if isinstance(given, RawTensor):
        return given.words(), given.dtype, None
    if isinstance(given, (np.ndarray, np.generic)):
        return _named(np.asarray(given))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        return _torch(given, torch)
    if hasattr(given, "__dlpack__"):
        try:
            return _named(np.from_dlpack(given))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            return None, "", f"cannot be read through DLPack: {error}"
    has_buffer = _has_buffer(given)
    if has_buffer or hasattr(given, "__array_interface__"):
        try:
            # Of bytes NumPy would make a text.
            return _named(np.asarray(memoryview(given) if has_buffer else given))
        except (TypeError, ValueError) as error:
            return None, "", f"cannot be read as an array: {error}"
    return None, "", f"wants an array, got {type(given).__name__}"


def _named(found: Any) -> tuple[Any, str, str | None]:
    dtype = found.dtype
    if dtype.byteorder in "<>" and not dtype.isnative:
        found = found.astype(dtype.newbyteorder("="))
        dtype = found.dtype
    name = dtype.name
    if name in _dtypes.NATIVE or name in _dtypes.SMALL:
        return found, name, None
    return None, "", f"has elements of {dtype}, which programs do not know"


def _torch(tensor: Any, torch: Any) -> tuple[Any, str, str | None]:
    if tensor.device.type != "cpu":
        return None, "", f"is on {tensor.device}: move it to the CPU"
    if tensor.layout != torch.strided or tensor.is_quantized:
        return None, "", "is not a dense tensor"
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _dtypes.NATIVE:
        return tensor.numpy(), name, None
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(tensor.element_size())
    if integers is None:
        return None, "", f"has elements of {name}, which programs do not know"
    return tensor.view(integers).numpy(), name, None


def _has_buffer(given: Any) -> bool:
    try:
        memoryview(given)
    except TypeError:
        return False
    return True


def flat_bytes(found: Any, order: tuple[int, ...]) -> Any:
    """The bytes of the elements, the dimensions in this order from outermost to innermost."""
    ordered = np.ascontiguousarray(found.transpose(order) if order else found)
    return ordered.reshape(-1).view(np.uint8)


def target(given: Any) -> tuple[Any, str, list[int], str | None]:
    """An array to write into, as unsigned integers of the size of its elements; or the reason that it is none."""
    if not isinstance(given, np.ndarray) and hasattr(given, "__array__") and not hasattr(given, "__dlpack__"):
        return None, "", [], f"wants an array that can be written, got {type(given).__name__}"
    found, name, problem = _look(given)
    if problem is not None:
        return None, "", [], problem
    if isinstance(found, np.ndarray) and isinstance(given, np.ndarray) and not given.dtype.isnative:
        return None, "", [], "has elements in another byte order"
    words = _WORDS.get(found.dtype.itemsize)
    if words is None:
        return None, "", [], f"has elements of {name}, which are not copied"
    if not found.flags.writeable:
        return None, "", [], "is read-only"
    if _overlaps_itself(found):
        return None, "", [], "has elements that share memory"
    return found.view(words), name, list(found.shape), None


def _overlaps_itself(found: Any) -> bool:
    return any(step == 0 and size > 1 for size, step in zip(found.shape, found.strides))
