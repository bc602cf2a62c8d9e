"""Times the reference on request: the other lane of `edgepack-bench compare` and `edgepack-bench serialize`.

usage: python reference.py MODELS_DIR THREADS

Prints `ready`, then answers each line of its input with nanoseconds:
    load NAME    opens MODELS_DIR/NAME.pte from memory and loads its method
    run NAME     one run of the loaded method
    serialize NAME    the program, taken apart beforehand, becomes the bytes of a file again
NAME may be a whole path without its `.pte`.

Threads are set through the thread pool where the bindings offer that, and by CPU affinity either way, so that one
thread is one thread.
"""
import os
import sys
import time

FOLDER, THREADS = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:THREADS]))
os.environ["OMP_NUM_THREADS"] = str(THREADS)

import torch  # noqa: E402
from executorch.extension.pybindings import portable_lib  # noqa: E402
from executorch.runtime import Runtime, Verification  # noqa: E402

torch.set_num_threads(THREADS)
reset = getattr(portable_lib, "_unsafe_reset_threadpool", None)
if reset is not None:
    reset(THREADS)

runtime = Runtime.get()
files, methods, programs = {}, {}, {}


def read(name):
    if name not in files:
        with open(os.path.join(FOLDER, f"{name}.pte"), "rb") as file:
            files[name] = file.read()
    return files[name]


def load(name):
    data = read(name)
    start = time.perf_counter_ns()
    method = runtime.load_program(data, verification=Verification.InternalConsistency).load_method("forward")
    took = time.perf_counter_ns() - start
    return took, method


def inputs_of(method):
    metadata = method.metadata
    tensors = (metadata.input_tensor_meta(index) for index in range(metadata.num_inputs()))
    torch.manual_seed(0)
    return [torch.randn(tuple(tensor.sizes())) for tensor in tensors]


def run(name):
    if name not in methods:
        method = load(name)[1]
        methods[name] = (method, inputs_of(method))
    method, inputs = methods[name]
    start = time.perf_counter_ns()
    method.execute(inputs)
    return time.perf_counter_ns() - start


def serialize(name):
    # The exporter takes seconds to import, and only this needs it.
    from executorch.exir._serialize import _deserialize_pte_binary, _serialize_pte_binary

    if name not in programs:
        programs[name] = _deserialize_pte_binary(read(name))
    start = time.perf_counter_ns()
    bytes(_serialize_pte_binary(programs[name], extract_delegate_segments=True))
    return time.perf_counter_ns() - start


REQUESTS = {"load": lambda name: load(name)[0], "run": run, "serialize": serialize}
print("ready", flush=True)
for line in sys.stdin:
    what, name = line.rstrip("\n").split(" ", 1)
    print(REQUESTS[what](name), flush=True)
