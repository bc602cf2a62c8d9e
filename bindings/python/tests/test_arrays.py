"""Arrays of other libraries, and elements that NumPy does not know."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import edgepack
import recorded
from conftest import MODELS

MLP = MODELS / "mlp_portable.pte"


class Capsule:
    """An array that is seen through DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Interface:
    """An array that is seen through NumPy's interface alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("kind", [Capsule, Interface])
def test_arrays_of_other_libraries(mlp: edgepack.Method, kind: type) -> None:
    values = np.arange(24, dtype=np.float32).reshape(3, 8)
    want = mlp(values)
    np.testing.assert_array_equal(mlp(kind(values)), want)
    np.testing.assert_array_equal(mlp(kind(np.asfortranarray(values))), want)
    with pytest.raises(edgepack.InputError, match=r"got f64\[3, 8\]"):
        mlp(kind(values.astype(np.float64)))


def test_outputs_go_through_dlpack(mlp: edgepack.Method) -> None:
    out = np.zeros((3, 4), np.float32)
    values = np.ones((3, 8), np.float32)
    mlp.run_into(values, out=Capsule(out))
    np.testing.assert_array_equal(out, mlp(values))
    np.testing.assert_array_equal(np.from_dlpack(mlp(values)), out)


def test_capsules_that_lie_are_refused(mlp: edgepack.Method) -> None:
    class Broken:
        def __dlpack__(self, **options: object) -> object:
            return object()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    class Elsewhere(Capsule):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **options: object) -> object:
            raise BufferError("on another device")

    for given in [Broken(), Elsewhere(np.ones((3, 8), np.float32))]:
        with pytest.raises(edgepack.InputError, match="DLPack"):
            mlp(given)


def test_bfloat16_without_a_type_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    path = MODELS / "bfloat16_portable.pte"
    method = edgepack.load(path)
    for _, inputs, outputs in recorded.runs(path.with_suffix(".safetensors")):
        have = method.run(*[inputs[index] for index in range(len(inputs))])
        for index, output in enumerate(have):
            recorded.check(output, outputs[index])
    assert any(value.dtype == "bfloat16" for value in method.inputs + method.outputs)


def test_bfloat16_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is absent")
    path = MODELS / "bfloat16_portable.pte"
    method = edgepack.load(path)
    _, inputs, outputs = recorded.runs(path.with_suffix(".safetensors"))[0]
    given = [
        tensor.words().view(ml_dtypes.bfloat16) if isinstance(tensor, edgepack.RawTensor) else tensor
        for _, tensor in sorted(inputs.items())
    ]
    for index, output in enumerate(method.run(*given)):
        recorded.check(output, outputs[index])


def test_raw_tensors_have_as_many_bytes_as_they_say() -> None:
    tensor = edgepack.RawTensor("bfloat16", (2, 3), bytes(12))
    assert tensor.strides == (6, 2) and tensor.words().dtype == np.uint16
    assert "bfloat16" in repr(tensor)
    for size in (0, 11, 13):
        with pytest.raises(ValueError):
            edgepack.RawTensor("bfloat16", (2, 3), bytes(size))


def test_bools_are_zero_and_one() -> None:
    out = np.zeros(4, np.uint8)
    data = edgepack.edit.data_file({"flags": np.array([True, False, True, True])})
    flags = edgepack.DataFile.open(data)["flags"]
    out[:] = flags.view(np.uint8)
    np.testing.assert_array_equal(out, [1, 0, 1, 1])


torch = None
if "torch" in sys.modules or __import__("importlib.util").util.find_spec("torch"):
    import torch  # type: ignore[no-redef]


@pytest.mark.skipif(torch is None, reason="torch is absent")
class TestTorch:
    """Tensors of PyTorch, in and out."""

    def test_inputs_and_outputs(self, mlp: edgepack.Method) -> None:
        values = torch.arange(24, dtype=torch.float32).reshape(3, 8)
        want = mlp(values.numpy())
        for given in [values, values.t().contiguous().t(), values.clone().requires_grad_()]:
            np.testing.assert_array_equal(mlp(given), want)
        back = torch.from_dlpack(mlp(values))
        np.testing.assert_array_equal(back.numpy(), want)
        out = torch.zeros(3, 4)
        mlp.run_into(values, out=out)
        np.testing.assert_array_equal(out.numpy(), want)
        turned = torch.zeros(4, 3)
        mlp.run_into(values, out=turned.t())
        np.testing.assert_array_equal(turned.t().numpy(), want)

    def test_bfloat16(self) -> None:
        path = MODELS / "bfloat16_portable.pte"
        method = edgepack.load(path)
        _, inputs, outputs = recorded.runs(path.with_suffix(".safetensors"))[0]
        given = [
            torch.from_numpy(tensor.words().view(np.int16).copy()).view(torch.bfloat16)
            if isinstance(tensor, edgepack.RawTensor)
            else torch.from_numpy(tensor)
            for _, tensor in sorted(inputs.items())
        ]
        for index, output in enumerate(method.run(*given)):
            recorded.check(output, outputs[index])

    def test_tensors_that_are_not_taken(self, mlp: edgepack.Method) -> None:
        for given, message in [
            (torch.ones(3, 8, dtype=torch.float64), r"got f64\[3, 8\]"),
            (torch.ones(3, 8, device="meta"), "is on meta"),
            (torch.ones(3, 8).to_sparse(), "not a dense tensor"),
        ]:
            with pytest.raises(edgepack.InputError, match=message):
                mlp(given)
