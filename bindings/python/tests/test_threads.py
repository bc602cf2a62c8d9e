"""The interpreter's lock: given up while a method runs, and never waited for by who holds a method."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

import edgepack
from conftest import MODELS


def test_threads_share_a_method_and_get_their_own_outputs() -> None:
    method = edgepack.load(MODELS / "mlp_portable.pte", threads=1)
    inputs = [np.full((3, 8), number, np.float32) for number in range(8)]
    want = [method(given) for given in inputs]
    assert not np.array_equal(want[0], want[1])
    wrong: list[int] = []

    def work(number: int) -> None:
        out = np.zeros((3, 4), np.float32)
        for turn in range(200):
            if turn % 2:
                method.run_into(inputs[number], out=out)
                have = out
            else:
                have = method(inputs[number])
            if not np.array_equal(have, want[number]):
                wrong.append(number)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(switch)
    assert wrong == []


def test_other_threads_go_on_while_a_method_runs() -> None:
    method = edgepack.load(MODELS / "classifier_portable.pte", threads=1)
    inputs = [np.ones(value.shape, value.dtype) for value in method.inputs]
    done = threading.Event()

    def work() -> None:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            method.run(*inputs)
        done.set()

    # No thread is made to give up the lock: the others get it only when it is given up.
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        turns = 0
        while not done.is_set():
            turns += 1
            time.sleep(0)
        thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert turns > 3


def test_closing_waits_for_a_run() -> None:
    method = edgepack.load(MODELS / "classifier_portable.pte", threads=1)
    inputs = [np.ones(value.shape, value.dtype) for value in method.inputs]
    ends: list[BaseException | None] = []

    def work() -> None:
        try:
            for _ in range(10_000):
                method.run(*inputs)
        except edgepack.ClosedError as error:
            ends.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    method.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(ends) == 3


def test_an_input_may_call_the_method_itself() -> None:
    method = edgepack.load(MODELS / "mlp_portable.pte")
    inner: list[np.ndarray] = []

    class Sly:
        """An array that runs the method when it is looked at."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        @property
        def __array_interface__(self) -> dict:
            inner.append(method(np.zeros((3, 8), np.float32)))
            return self.array.__array_interface__

    want = method(np.ones((3, 8), np.float32))
    np.testing.assert_array_equal(method(Sly(np.ones((3, 8), np.float32))), want)
    assert inner


def test_programs_are_opened_and_verified_in_many_threads() -> None:
    def work() -> None:
        for _ in range(5):
            edgepack.load(MODELS / "mlp_portable.pte")
            assert edgepack.verify(MODELS / "mlp_portable.pte") == []

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("hold", [True, False])
def test_an_array_may_be_changed_by_others_while_a_method_runs(hold: bool) -> None:
    method = edgepack.load(MODELS / "mlp_portable.pte", threads=1)
    given = np.ones((3, 8), np.float32)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            given[:] = 1
            if not hold:
                time.sleep(0)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        want = method(np.ones((3, 8), np.float32))
        for _ in range(200):
            np.testing.assert_array_equal(method(given), want)
    finally:
        stop.set()
        thread.join()
