"""Programs and methods: opening, running, inputs that do not fit, and what stays alive."""

from __future__ import annotations

import gc
import io
import pathlib
import weakref

import numpy as np
import pytest

import edgepack
from conftest import MODELS

MLP = MODELS / "mlp_portable.pte"


def ones() -> np.ndarray:
    return np.ones((3, 8), np.float32)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(lambda: MLP, id="pathlib"),
        pytest.param(lambda: str(MLP), id="str"),
        pytest.param(lambda: MLP.read_bytes(), id="bytes"),
        pytest.param(lambda: bytearray(MLP.read_bytes()), id="bytearray"),
        pytest.param(lambda: memoryview(MLP.read_bytes()), id="memoryview"),
        pytest.param(lambda: np.fromfile(MLP, np.uint8), id="array"),
        pytest.param(lambda: io.BytesIO(MLP.read_bytes()), id="BytesIO"),
        pytest.param(lambda: open(MLP, "rb"), id="file"),
    ],
)
@pytest.mark.parametrize("mmap", [False, True])
def test_programs_open_from_anything(source, mmap: bool) -> None:
    program = edgepack.Program.open(source(), mmap=mmap)
    assert program.methods == ["forward"]
    out = program.method("forward").load()(ones())
    assert out.shape == (3, 4) and out.dtype == np.float32
    want = edgepack.load(MLP)(ones())
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("source", [None, 7, 1.5, object(), [MLP], io.StringIO("text")])
def test_other_things_are_not_files(source) -> None:
    with pytest.raises(TypeError):
        edgepack.Program.open(source)


def test_files_that_are_not_there() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        edgepack.Program.open("no/such/file.pte")
    assert isinstance(raised.value, edgepack.Error) and raised.value.errno == 2
    with pytest.raises(edgepack.AccessError):
        edgepack.Program.open(MODELS)
    with pytest.raises(edgepack.AccessError):
        edgepack.verify("no/such/file.pte")


def test_a_broken_file_says_rule_path_and_offset() -> None:
    with pytest.raises(edgepack.InvalidFile) as raised:
        edgepack.Program.open(MLP.read_bytes()[:1000])
    error = raised.value
    assert error.rule is not None and error.rule.startswith("PTE-")
    assert error.findings and error.findings[0].rule in str(error)
    assert error.code == "InvalidProgram"


def test_limits_have_names() -> None:
    assert edgepack.Program.open(MLP, limits="hostile").methods == ["forward"]
    with pytest.raises(edgepack.UsageError, match="hostile"):
        edgepack.Program.open(MLP, limits="none")


def test_methods_are_described_before_they_are_loaded() -> None:
    method = edgepack.Program.open(MLP).method()
    (value,) = method.inputs
    assert value == edgepack.Value("tensor", "float32", (3, 8), (0, 1), False, None, None)
    assert [output.shape for output in method.outputs] == [(3, 4)]
    assert method.backends == []
    assert "forward" in repr(method)
    with pytest.raises(KeyError) as raised:
        edgepack.Program.open(MLP).method("backward")
    assert isinstance(raised.value, edgepack.NotFound) and raised.value.name == "backward"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((3, 7), np.float32), r"input 0 wants f32\[3, 8\], got f32\[3, 7\]"),
        (np.ones((8,), np.float32), r"got f32\[8\]"),
        (np.ones((3, 8), np.float64), r"got f64\[3, 8\]"),
        (np.ones((3, 8), np.int32), r"got i32\[3, 8\]"),
        (np.ones((3, 8), np.bool_), r"got bool\[3, 8\]"),
        (np.ones((3, 8), "U1"), r"which programs do not know"),
        (np.ones((3, 8), object), r"which programs do not know"),
        ([[1.0] * 8] * 3, r"wants an array, got list"),
        (None, r"wants an array, got NoneType"),
        (1.0, r"wants an array, got float"),
        ("text", r"wants an array, got str"),
        (edgepack.RawTensor("bfloat16", (3, 8), bytes(48)), r"got bf16\[3, 8\]"),
    ],
)
def test_inputs_that_do_not_fit(mlp: edgepack.Method, given, message: str) -> None:
    with pytest.raises(edgepack.InputError, match=message) as raised:
        mlp(given)
    assert raised.value.index == 0
    assert isinstance(raised.value, ValueError)
    # The method is as it was.
    assert mlp(ones()).shape == (3, 4)


@pytest.mark.parametrize("count", [0, 2, 3])
def test_too_few_or_too_many_inputs(mlp: edgepack.Method, count: int) -> None:
    with pytest.raises(edgepack.InputError, match=f"takes 1 input, got {count}"):
        mlp(*[ones()] * count)


def test_arrays_of_any_memory_order(mlp: edgepack.Method) -> None:
    values = np.arange(24, dtype=np.float32).reshape(3, 8)
    want = mlp(values)
    strided = np.zeros((6, 16), np.float32)
    strided[::2, ::2] = values
    backwards = np.ascontiguousarray(values[::-1, ::-1])
    for given in [
        np.asfortranarray(values),
        strided[::2, ::2],
        backwards[::-1, ::-1],
        values.astype(">f4"),
        memoryview(values),
    ]:
        np.testing.assert_array_equal(mlp(given), want)
    readonly = values.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(mlp(readonly), want)


def test_inputs_are_copied_and_outputs_are_fresh(mlp: edgepack.Method) -> None:
    given = ones()
    first = mlp(given)
    before = first.copy()
    assert first.flags.writeable
    given[:] = 7
    second = mlp(given)
    np.testing.assert_array_equal(first, before)
    assert not np.array_equal(first, second)
    assert not np.shares_memory(first, second)
    first[:] = 0
    np.testing.assert_array_equal(mlp(ones()), before)


def test_channels_last_is_by_values() -> None:
    method = edgepack.load(MODELS / "channels_last_portable.pte")
    orders = {value.dim_order for value in (*method.inputs, *method.outputs) if value.dim_order}
    assert (0, 2, 3, 1) in orders


def test_run_gives_a_tuple_and_a_call_the_only_output(mlp: edgepack.Method) -> None:
    outputs = mlp.run(ones())
    assert isinstance(outputs, tuple) and len(outputs) == 1
    np.testing.assert_array_equal(outputs[0], mlp(ones()))


def test_outputs_go_into_arrays_of_the_caller(mlp: edgepack.Method) -> None:
    want = mlp(ones())
    out = np.zeros((3, 4), np.float32)
    assert mlp.run_into(ones(), out=out) is None
    np.testing.assert_array_equal(out, want)
    wide = np.zeros((6, 8), np.float32)
    mlp.run_into(ones(), out=[wide[::2, ::2]])
    np.testing.assert_array_equal(wide[::2, ::2], want)
    assert not wide[1::2].any()
    turned = np.zeros((4, 3), np.float32).T
    mlp.run_into(ones(), out=(turned,))
    np.testing.assert_array_equal(turned, want)
    mlp.run_into(ones(), out=[None])
    # The same array as input and output.
    square = np.zeros((3, 8), np.float32)
    square[:] = 1
    mlp.run_into(square, out=square[:, :4])
    np.testing.assert_array_equal(square[:, :4], want)


def readonly() -> np.ndarray:
    array = np.zeros((3, 4), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 5), np.float32), r"out 0 wants f32\[3, 4\], got f32\[3, 5\]"),
        (np.zeros((3, 4), np.float64), r"got f64\[3, 4\]"),
        (np.zeros((3, 4), ">f4"), r"byte order"),
        (readonly(), r"read-only"),
        (np.broadcast_to(np.zeros(4, np.float32), (3, 4)), r"read-only|share memory"),
        (bytes(48), r"got u8\[48\]|read-only"),
        ("text", r"wants an array"),
        ([], r"1 outputs, out has 0"),
        ([np.zeros((3, 4), np.float32)] * 2, r"1 outputs, out has 2"),
    ],
)
def test_arrays_that_outputs_do_not_fit(mlp: edgepack.Method, out, message: str) -> None:
    with pytest.raises(edgepack.InputError, match=message):
        mlp.run_into(ones(), out=out)


def test_use_after_close() -> None:
    program = edgepack.Program.open(MLP)
    method = program.method().load()
    program.close()
    program.close()
    with pytest.raises(edgepack.ClosedError, match="the program is closed"):
        program.method()
    with pytest.raises(ValueError):
        program.methods
    assert "closed" in repr(program)
    # A method has what it needs.
    assert method(ones()).shape == (3, 4)
    method.close()
    for use in [lambda: method(ones()), lambda: method.reset(), lambda: method.memory(), lambda: method.state()]:
        with pytest.raises(edgepack.ClosedError, match="the method is closed"):
            use()
    with edgepack.Program.open(MLP) as program, program.method().load() as method:
        method(ones())
    with pytest.raises(edgepack.ClosedError):
        method(ones())


@pytest.mark.parametrize("mmap", [False, True])
def test_weights_are_read_only_views_that_outlive_the_program(mmap: bool) -> None:
    program = edgepack.Program.open(MLP if mmap else MLP.read_bytes(), mmap=mmap)
    facts = program.weights()
    name = next(name for name, fact in facts.items() if fact["dtype"] == "float32" and len(fact["shape"]) == 2)
    weight = program.weight(name)
    assert weight.shape == facts[name]["shape"] and weight.nbytes == facts[name]["bytes"]
    assert not weight.flags.writeable
    with pytest.raises(ValueError):
        weight[0] = 0
    with pytest.raises(ValueError):
        weight.flags.writeable = True
    # Two views are of the same bytes: nothing was copied.
    assert np.shares_memory(weight, program.weight(name))
    before = weight.copy()
    program.close()
    del program
    gc.collect()
    np.testing.assert_array_equal(weight, before)
    with pytest.raises(edgepack.NotFound):
        edgepack.Program.open(MLP).weight("nothing")


def test_views_let_go_of_what_they_hold() -> None:
    data = edgepack.DataFile.open((MODELS.parent / "data" / "tensors.ptd").read_bytes())
    array = data[data.keys()[0]]
    holder = array.base
    while isinstance(holder, (np.ndarray, memoryview)):
        holder = holder.obj if isinstance(holder, memoryview) else holder.base
    assert type(holder).__name__ == "Bytes"
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None


def test_state_stays_from_run_to_run_and_is_reset() -> None:
    method = edgepack.load(MODELS / "counter_portable.pte")
    inputs = [np.ones(value.shape, value.dtype) for value in method.inputs]
    first, second = method.run(*inputs), method.run(*inputs)
    assert not all(np.array_equal(a, b) for a, b in zip(first, second))
    method.reset()
    again = method.run(*inputs)
    for have, want in zip(again, first):
        np.testing.assert_array_equal(have, want)


def test_state_is_read_and_written_by_name() -> None:
    method = edgepack.load(MODELS / "buffer_names_portable.pte")
    state = method.state()
    assert state
    for name, value in state.items():
        changed = np.full_like(value, 3)
        method.set_state(name, changed)
        np.testing.assert_array_equal(method.state()[name], changed)
        with pytest.raises(edgepack.Error):
            method.set_state(name, np.zeros((*value.shape, 2), value.dtype))
    with pytest.raises(edgepack.NotFound):
        method.set_state("nothing", np.zeros(1, np.float32))


def test_numbers_are_inputs() -> None:
    method = edgepack.load(MODELS / "numbers_portable.pte")
    kinds = [value.kind for value in method.inputs]
    assert set(kinds) - {"tensor"}
    given = [
        np.ones(value.shape, value.dtype) if value.kind == "tensor" else value.value for value in method.inputs
    ]
    method.run(*given)
    for index, kind in enumerate(kinds):
        if kind != "tensor":
            wrong = [*given]
            wrong[index] = "text"
            with pytest.raises(edgepack.InputError):
                method.run(*wrong)


def test_memory_is_told_by_purpose(mlp: edgepack.Method) -> None:
    mlp(ones())
    memory = mlp.memory()
    assert memory["planned"] > 0 and set(memory) >= {"planned", "packed", "constants", "borrowed"}


def test_options_of_loading() -> None:
    method = edgepack.Program.open(MLP).method()
    want = method.load()(ones())
    for options in [{"threads": 1}, {"threads": 2}, {"optimize": False}, {"limits": "hostile"}]:
        np.testing.assert_allclose(method.load(**options)(ones()), want, rtol=1e-6)
    with pytest.raises(edgepack.Error):
        method.load(limits="none")
    with pytest.raises((TypeError, OverflowError)):
        method.load(threads=-1)


def test_packed_weights_stay_in_a_folder(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "packed"
    method = edgepack.Program.open(MODELS / "mlp_xnnpack.pte").method()
    inputs = [np.ones(value.shape, value.dtype) for value in method.inputs]
    want = method.load(pack_cache=folder).run(*inputs)
    assert folder.is_dir()
    for have, wanted in zip(method.load(pack_cache=folder).run(*inputs), want):
        np.testing.assert_array_equal(have, wanted)


def test_data_files_are_given_in_any_form() -> None:
    path = MODELS / "external_portable.pte"
    (data,) = MODELS.glob("external_portable.*.ptd")
    method = edgepack.Program.open(path).method()
    with pytest.raises(edgepack.Error):
        method.load()
    inputs = [np.ones(value.shape, value.dtype) for value in method.inputs]
    want = method.load(data=data).run(*inputs)
    opened = edgepack.DataFile.open(data)
    for form in [[data], data.read_bytes(), opened, (opened,)]:
        for have, wanted in zip(method.load(data=form).run(*inputs), want):
            np.testing.assert_array_equal(have, wanted)


def test_a_panic_is_an_exception() -> None:
    from edgepack import _edgepack

    with pytest.raises(edgepack.InternalError, match="asked for"):
        _edgepack._panic_for_tests()
