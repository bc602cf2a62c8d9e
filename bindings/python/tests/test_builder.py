"""Programs made from Python."""

from __future__ import annotations

import numpy as np
import pytest

import edgepack


def test_a_program_is_built_and_runs() -> None:
    builder = edgepack.ProgramBuilder()
    weight = builder.constant("w", np.array([[1, 2], [3, 4]], np.float32))
    forward = builder.method("forward")
    x = forward.input("float32", (2, 2))
    y = forward.call("aten::add.out", x, weight, 1, like=x)
    z = forward.call("aten::mul.out", y, y, out=("float32", (2, 2)))
    forward.output(z, 7)
    builder.getter("get_vocab_size", 32_000)
    builder.metadata("author", "a test")
    data = builder.finish()
    assert [finding for finding in edgepack.verify(data) if finding.severity == "error"] == []
    program = edgepack.Program.open(data)
    assert program.metadata() == {"get_vocab_size": 32_000, "author": "a test"}
    array, number = program.method().load()(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(array, [[4, 9], [16, 25]])
    assert number == 7
    np.testing.assert_array_equal(program.weight("w"), [[1, 2], [3, 4]])
    with pytest.raises(edgepack.ClosedError):
        builder.finish()


def test_lists_and_dynamic_sizes() -> None:
    builder = edgepack.ProgramBuilder()
    forward = builder.method("forward")
    x = forward.input("float32", (4, 3), dynamic=True)
    both = forward.call("aten::cat.out", [x, x], 1, out=("float32", (4, 6)))
    forward.output(both)
    with pytest.raises(edgepack.EditError):
        forward.call("aten::cat.out", "text", 1, like=x)
    state = builder.method("count")
    total = state.state("total", np.zeros(1, np.float32))
    one = builder.constant("one", np.ones(1, np.float32))
    state.call("aten::add.out", total, one, 1, out=total)
    state.output(total)
    program = edgepack.Program.open(builder.finish())
    count = program.method("count").load()
    assert [float(count()[0]) for _ in range(3)] == [1, 2, 3]
    count.reset()
    assert float(count()[0]) == 1


def test_what_does_not_fit_is_refused() -> None:
    builder, other = edgepack.ProgramBuilder(), edgepack.ProgramBuilder()
    forward = builder.method("forward")
    x = forward.input("float32", (2, 2))
    stranger = other.method("forward").input("float32", (2, 2))
    for use in [
        lambda: forward.call("aten::no_such.out", x, like=x),
        lambda: forward.call("aten::add.out", x, stranger, 1, like=x),
        lambda: forward.input("float33", (2, 2)),
        lambda: forward.output(stranger),
    ]:
        with pytest.raises(edgepack.Error):
            use()
    for use in [
        lambda: forward.call("aten::add.out", x, object(), like=x),
        lambda: forward.call("aten::add.out", x, x, 1, like=x, out=x),
        lambda: forward.call("aten::add.out", x, x, 1, out="float32"),
        lambda: forward.input("float32", (-1, 2)),
    ]:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            use()
    assert "value" in repr(x) and "constant" in repr(builder.constant("c", np.zeros(1, np.float32)))
