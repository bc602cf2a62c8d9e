"""Times the reference on request: the other lane of `edgepack-bench suite`, `language`, `operators`, `serialize`, `lower` and
`delegates`.

usage: python reference.py MODELS_DIR THREADS

Prints `ready`, then answers each line of its input with a number, nanoseconds unless said otherwise, or the
name of an error:
    load NAME    opens MODELS_DIR/NAME.pte from memory and loads its method
    run NAME     one run of the loaded method
    calls TIMES NAME    so many runs of the loaded method, one after the other; outputs stay where they are
    serialize NAME    the program, taken apart beforehand, becomes the bytes of a file again
    lower PATH    the exported program of this archive, read beforehand, becomes the bytes of a file
    arenas PATH    bytes of memory that the last file `lower` made of it plans
    delegate PATH    the same, with the parts that XNNPACK takes given to it
    keep FILE    writes the last file that `delegate` made
    cases PATH    takes the inputs of a first run from `cases.safetensors` beside an archive, or from its own name
    prompt LENGTH 0 VOCABULARY NAME    a language model takes a prompt
    single LENGTH TIMES VOCABULARY NAME    so many single tokens behind it
    first LENGTH 0 VOCABULARY NAME    opens the file, and takes a prompt
    telling LENGTH TIMES VOCABULARY NAME    `growth` of opening a file and taking a prompt and single tokens
    growth NAME    bytes that this process has resident at most for loading a program from its file and running it, besides
        what it has before; the first request of a process
    fresh NAME    loads a program anew and runs it once on those inputs, as later `run`s do
    apart FOLDER    difference between the outputs of FOLDER/ours and FOLDER/theirs over the largest, times 1e9
    forget-peak, peak    most memory this process had resident since it was told to forget, in bytes
NAME may be a whole path without its `.pte`.

Threads are set through the thread pool where the bindings offer that, and by CPU affinity either way, so that one
thread is one thread.
"""
import copy
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
# Element types, by their numbers in the file.
FLOAT, INTEGERS = 6, {1: torch.int8, 4: torch.int64}
files, methods, programs, exported, lowered, outputs = {}, {}, {}, {}, {}, {}
recorded = []


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


def inputs_of(metadata):
    tensors = (metadata.input_tensor_meta(index) for index in range(metadata.num_inputs()))
    torch.manual_seed(0)
    return [input_of(tensor) for tensor in tensors]


def input_of(tensor):
    sizes, dtype = tuple(tensor.sizes()), tensor.dtype()
    if dtype == FLOAT:
        return torch.randn(sizes)
    return torch.randint(0, 100, sizes, dtype=INTEGERS[dtype])


def run(name):
    if name not in methods:
        method = load(name)[1]
        methods[name] = (method, inputs_of(method.metadata))
    method, inputs = methods[name]
    start = time.perf_counter_ns()
    method.execute(inputs)
    return time.perf_counter_ns() - start


def calls(what):
    times, name = what.split(" ", 1)
    # Registers the quantised operators.
    import executorch.kernels.quantized  # noqa: F401

    if name not in methods:
        run(name)
    method, inputs = methods[name]
    call = method._method.call
    start = time.perf_counter_ns()
    for _ in range(int(times)):
        call(inputs, False)
    return time.perf_counter_ns() - start


def serialize(name):
    # The exporter takes seconds to import, and only this needs it.
    from executorch.exir._serialize import _deserialize_pte_binary, _serialize_pte_binary

    if name not in programs:
        programs[name] = _deserialize_pte_binary(read(name))
    start = time.perf_counter_ns()
    bytes(_serialize_pte_binary(programs[name], extract_delegate_segments=True))
    return time.perf_counter_ns() - start


def lower(path):
    from executorch.exir import to_edge

    if path not in exported:
        exported[path] = torch.export.load(path)
    # Lowering may change what it is given.
    program = copy.deepcopy(exported[path])
    start = time.perf_counter_ns()
    lowered[path] = to_edge(program).to_executorch().buffer
    return time.perf_counter_ns() - start


def delegate(path):
    # Registers the operators of quantised archives.
    import torchao  # noqa: F401
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner)
    from executorch.exir import to_edge_transform_and_lower

    if path not in exported:
        exported[path] = torch.export.load(path)
    program = copy.deepcopy(exported[path])
    dynamic = any("choose_qparams" in str(node.target) for node in program.graph.nodes)
    partitioners = [XnnpackDynamicallyQuantizedPartitioner()] if dynamic else []
    start = time.perf_counter_ns()
    buffer = to_edge_transform_and_lower(program, partitioner=[*partitioners, XnnpackPartitioner()]).to_executorch().buffer
    took = time.perf_counter_ns() - start
    lowered["last"] = buffer
    return took


def keep(path):
    with open(path, "wb") as file:
        return file.write(lowered["last"])


def cases(path):
    from safetensors.torch import load_file

    beside = os.path.join(os.path.dirname(path), "cases.safetensors")
    tensors = load_file(beside if os.path.exists(beside) else os.path.splitext(path)[0] + ".safetensors")
    inputs = {int(key.rsplit(".", 1)[1]): tensor for key, tensor in tensors.items() if key.startswith("forward.0.in.")}
    recorded[:] = [inputs[index] for index in sorted(inputs)]
    return len(recorded)


def fresh(name):
    # Registers the quantised operators.
    import executorch.kernels.quantized  # noqa: F401

    files.pop(name, None)
    methods[name] = (load(name)[1], list(recorded))
    outputs[name] = [value.clone() for value in methods[name][0].execute(recorded) if isinstance(value, torch.Tensor)]
    return len(outputs[name])


def apart(folder):
    most = 0.0
    for ours, theirs in zip(*(outputs[f"{folder}/{name}"] for name in ("ours", "theirs")), strict=True):
        if ours.shape != theirs.shape:
            raise ValueError("shapes differ")
        ours, theirs = ours.double(), theirs.double()
        finite = theirs[theirs.isfinite()].abs()
        differences = (ours - theirs).abs()[(ours != theirs) & ~(ours.isnan() & theirs.isnan())]
        if differences.numel():
            most = max(most, (differences.max() / finite.max().clamp(min=1e-30)).item())
    return round(most * 1e9)


def arenas(path):
    from executorch.exir._serialize import _deserialize_pte_binary

    plan = _deserialize_pte_binary(lowered[path]).program.execution_plan[0]
    return sum(plan.non_const_buffer_sizes[1:])


def forget_peak(_):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return 0


def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))


def peak(_):
    return status("VmHWM:")


def growth(name):
    path = os.path.join(FOLDER, f"{name}.pte")
    inputs = inputs_of(runtime.load_program(path).metadata("forward"))
    forget_peak(name)
    before = status("VmRSS:")
    program = runtime.load_program(path)
    method = program.load_method("forward")
    for _ in range(21):
        method.execute(inputs)
    return peak(name) - before


def language(what):
    length, times, vocabulary, name = what.split(" ", 3)
    return int(length), int(times), int(vocabulary), name


def tokens_of(count, vocabulary):
    return [(at * 7919 + 13) % vocabulary for at in range(count)]


def open_language(name):
    # Registers attention over a cache and quantised operators.
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401
    import executorch.kernels.quantized  # noqa: F401

    return runtime.load_program(os.path.join(FOLDER, f"{name}.pte")).load_method("forward")


def take(method, tokens, at):
    return method._method.call([torch.tensor([tokens]), torch.tensor([at])], False)


def prompt(what):
    length, _, vocabulary, name = language(what)
    if name not in methods:
        methods[name] = open_language(name)
    start = time.perf_counter_ns()
    take(methods[name], tokens_of(length, vocabulary), 0)
    return time.perf_counter_ns() - start


def single(what):
    length, times, vocabulary, name = language(what)
    tokens = tokens_of(length, vocabulary)
    start = time.perf_counter_ns()
    for index in range(times):
        take(methods[name], [tokens[index % length]], length + index)
    return time.perf_counter_ns() - start


def first(what):
    length, _, vocabulary, name = language(what)
    start = time.perf_counter_ns()
    take(open_language(name), tokens_of(length, vocabulary), 0)
    return time.perf_counter_ns() - start


def telling(what):
    # Registers what it needs beforehand.
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401
    import executorch.kernels.quantized  # noqa: F401

    forget_peak(what)
    before = status("VmRSS:")
    prompt(what)
    single(what)
    return peak(what) - before


REQUESTS = {
    "load": lambda name: load(name)[0],
    "run": run,
    "calls": calls,
    "serialize": serialize,
    "lower": lower,
    "delegate": delegate,
    "keep": keep,
    "cases": cases,
    "fresh": fresh,
    "apart": apart,
    "arenas": arenas,
    "forget-peak": forget_peak,
    "peak": peak,
    "growth": growth,
    "prompt": prompt,
    "single": single,
    "first": first,
    "telling": telling,
}
# Nothing but answers goes to the output, whatever libraries print.
answers, sys.stdout = sys.stdout, sys.stderr
print("ready", file=answers, flush=True)
for line in sys.stdin:
    what, name = line.rstrip("\n").split(" ", 1)
    try:
        answer = REQUESTS[what](name)
    except Exception as error:
        answer = type(error).__name__
    print(answer, file=answers, flush=True)
