"""The reference runtime on the same file with the same inputs, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import edgepack
import recorded
from conftest import MODELS

runtime = pytest.importorskip("executorch.runtime", reason="executorch is absent")
torch = pytest.importorskip("torch", reason="torch is absent")


def programs() -> list[Path]:
    found = [path for path in sorted(MODELS.glob("*_portable.pte")) if not recorded.data_files(path)]
    found += sorted(MODELS.glob("*_xnnpack.pte"))
    assert len(found) > 50
    return found


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_the_same_numbers(path: Path) -> None:
    records = [run for run in recorded.runs(path.with_suffix(".safetensors")) if run[0] == "forward"]
    if not records:
        pytest.skip("it has no method forward")
    try:
        reference = runtime.Runtime.get().load_program(str(path)).load_method("forward")
    except RuntimeError as error:
        pytest.skip(f"the reference does not load it: {error}".splitlines()[0])
    method = edgepack.Program.open(path).method().load(threads=1)
    for _, inputs, _ in records[:2]:
        arrays = [inputs.get(index) for index in range(len(method.inputs))]
        if any(isinstance(array, edgepack.RawTensor) for array in arrays):
            pytest.skip("its inputs are bfloat16")
        kinds = [value.kind for value in method.inputs]
        mine = [recorded.argument(array, about) for array, about in zip(arrays, method.inputs)]
        order = [about.dim_order for about in method.inputs]
        theirs = []
        for array, kind, dims in zip(arrays, kinds, order):
            if kind != "tensor":
                theirs.append(None if array is None else array.item())
            else:
                tensor = torch.from_numpy(array)
                if dims == (0, 2, 3, 1):
                    tensor = tensor.to(memory_format=torch.channels_last)
                theirs.append(tensor)
        try:
            want = reference.execute(theirs)
        except (RuntimeError, TypeError) as error:
            pytest.skip(f"the reference does not run it: {error}".splitlines()[0])
        have = method.run(*mine)
        assert len(have) == len(want)
        for mine_out, their_out in zip(have, want):
            if isinstance(their_out, torch.Tensor):
                if their_out.dtype == torch.bfloat16:
                    their_out = their_out.float()
                    mine_out = recorded.floats(mine_out)[1].astype(np.float32)
                    np.testing.assert_allclose(mine_out, their_out.numpy(), 4e-2, 4e-2)
                else:
                    recorded.check(mine_out, their_out.numpy())
            else:
                assert mine_out == their_out
