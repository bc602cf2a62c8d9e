"""Measures what a call through Python costs next to the same run from Rust, with one thread and one build.

    python bindings/python/overhead.py [PROGRAM…]

Run it with an optimised wheel. The run from Rust is that of `edgepack bench`: the median of many.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import edgepack
from edgepack import _command

MODELS = Path(__file__).resolve().parents[2] / "tests" / "data" / "corpus" / "models"


def median(call: object, seconds: float = 1.0) -> float:
    """The median time of a call, in microseconds, over batches that take a millisecond at least."""
    batch, times = 1, []
    while True:
        begin = time.perf_counter()
        for _ in range(batch):
            call()  # type: ignore[operator]
        spent = time.perf_counter() - begin
        if spent >= 1e-3:
            break
        batch *= 2
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(batch):
            call()  # type: ignore[operator]
        times.append((time.perf_counter() - begin) / batch)
    return statistics.median(times) * 1e6


def main() -> None:
    """Prints a line per program."""
    programs = [Path(name) for name in sys.argv[1:]] or [MODELS / "mlp_portable.pte", MODELS / "classifier_portable.pte"]
    for path in programs:
        method = edgepack.load(path, threads=1)
        inputs = [np.random.default_rng(1).random(value.shape).astype(value.dtype) for value in method.inputs]
        out = list(method.run(*inputs))
        document = _command.document(["bench", str(path), "--threads", "1", "--random", "1"])
        print(path.name, json.dumps(document)[:400] if "--raw" in sys.argv else "")
        call = median(lambda: method(*inputs))
        into = median(lambda: method.run_into(*inputs, out=out))
        print(f"  call {call:.2f} µs, run_into {into:.2f} µs")


if __name__ == "__main__":
    main()
