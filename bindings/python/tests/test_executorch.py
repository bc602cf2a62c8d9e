"""The reference runtime on the same file with the same inputs, where it is installed."""

from __future__ import annotations

import faulthandler
import os
import pickle
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


def execute(path: Path, inputs: list) -> list:
    """Outputs of the reference, in a process of its own: some programs end the process that runs them."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.close(reader)
        try:
            method = runtime.Runtime.get().load_program(str(path)).load_method("forward")
            answer = [plain(output) for output in method.execute(inputs)]
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    answer = pickle.loads(data) if data else "it ends the process"
    if isinstance(answer, str):
        pytest.skip(f"the reference does not run it: {answer}")
    return answer


def plain(output: object) -> object:
    """An output as arrays and numbers; bfloat16 by its bits."""
    if not isinstance(output, torch.Tensor):
        return output
    if output.dtype == torch.bfloat16:
        return ("bfloat16", output.contiguous().view(torch.int16).numpy().copy())
    return output.numpy().copy()


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_the_same_numbers(path: Path) -> None:
    records = [run for run in recorded.runs(path.with_suffix(".safetensors")) if run[0] == "forward"]
    if not records:
        pytest.skip("it has no method forward")
    method = edgepack.Program.open(path).method().load(threads=1, reference=True)
    (_, inputs, _), *_ = records
    arrays = [inputs.get(index) for index in range(len(method.inputs))]
    if any(isinstance(array, edgepack.RawTensor) for array in arrays):
        pytest.skip("its inputs are bfloat16")
    mine = [recorded.argument(array, about) for array, about in zip(arrays, method.inputs)]
    theirs = []
    for array, about in zip(mine, method.inputs):
        if about.kind != "tensor":
            theirs.append(array)
            continue
        tensor = torch.from_numpy(array)
        last = about.dim_order == (0, 2, 3, 1)
        theirs.append(tensor.to(memory_format=torch.channels_last) if last else tensor)
    want = execute(path, theirs)
    have = method.run(*mine)
    assert len(have) == len(want)
    for mine_out, their_out in zip(have, want):
        if isinstance(their_out, tuple):
            their_out = edgepack.RawTensor(their_out[0], their_out[1].shape, their_out[1].tobytes())
        if isinstance(their_out, (np.ndarray, edgepack.RawTensor)):
            recorded.check(mine_out, their_out)
        else:
            assert mine_out == their_out
