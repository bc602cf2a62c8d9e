#!/usr/bin/env python3
"""Runs random programs here and on the reference runtime, and compares, until it is stopped.

usage: PYTHON fuzz/against_reference.py [--edgepack BINARY] [--seed N] [--seconds S] [--out DIR] [--every N]

PYTHON has `executorch`, `torch` and `safetensors`. Program N is what `edgepack smith --seed N` makes,
with what it reads and never wrote as inputs, since the reference leaves that to chance or reads it through a null pointer;
inputs are random, by the same number. The reference runs it twice on one loaded method, `edgepack check` replays both runs.

A program that answers otherwise here is a finding: `DIR/seed-N.pte` with `DIR/seed-N.safetensors` beside it, and a line
that says what `check` said; so is one that fails here and runs there, unless an operator refuses its arguments. Refusals on
either side are counted, and the most common listed at the end: the reference lacks operators, and takes arguments that
PyTorch refuses, such as matrices whose inner sizes differ. Counts are printed every N programs and at the end; the
exit status is 1 if there were findings.
"""
import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

# Where the reference is known to answer otherwise: it converts numbers of more than 64 bits as the machine happens to, it
# takes the sign of the dividend for integer remainders, shifts by what is not a number of bits as the machine happens to, and
# joins nothing but empty tensors to one of another shape. Its mean of one element is NaN where the variance is.
KNOWN = re.compile(
    r"executorch_prim::(sym_int|round|ceil|trunc|mod)|aten::(remainder|cat|bitwise_(left|right)_shift|var_mean)\."
)
# Complex numbers beyond the square root of the range overflow in its division.
KNOWN_COMPLEX = re.compile(r"aten::div\.")
# What is random on purpose, or holds whatever memory held.
UNCOMPARABLE = re.compile(r"aten::(rand|bernoulli|native_dropout|dropout|empty|resize)")
TIME_LIMIT = 20


def worker():
    """Answers each line `PROGRAM SEED CASES` with what became of it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from executorch.extension.pybindings import portable_lib
    from safetensors.torch import save_file

    try:
        import executorch.kernels.quantized  # noqa: F401
    except Exception:
        pass
    dtypes = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]
    dtypes += [torch.complex32, torch.complex64, torch.complex128, torch.bool]
    answers, sys.stdout = sys.stdout, sys.stderr

    def number(random, meta, round):
        shape, dtype = meta.sizes(), dtypes[meta.dtype()] if meta.dtype() < len(dtypes) else torch.bfloat16
        if dtype == torch.bool:
            return torch.rand(shape, generator=random) < 0.5
        if not dtype.is_floating_point and not dtype.is_complex:
            return torch.randint(0 if dtype == torch.uint8 else -4, 5, shape, generator=random).to(dtype)
        # Halves, so that sums are exact, in one run, any numbers in the other.
        real = torch.randint(-8, 9, shape, generator=random) / 2 if round == 0 else torch.randn(shape, generator=random)
        return real.to(dtype)

    def answer(program, seed, cases):
        random = torch.Generator().manual_seed(int(seed))
        method = portable_lib._load_for_executorch(program)
        meta = method.method_meta("forward")
        recorded = {}
        for round in range(2):
            inputs = [number(random, meta.input_tensor_meta(index), round) for index in range(meta.num_inputs())]
            recorded |= {f"forward.{round}.in.{index}": tensor.clone() for index, tensor in enumerate(inputs)}
            outputs = method.run_method("forward", inputs)
            for index, output in enumerate(outputs):
                if not isinstance(output, torch.Tensor):
                    output = torch.tensor(output, dtype=torch.float64 if isinstance(output, float) else None)
                recorded[f"forward.{round}.out.{index}"] = output.detach().contiguous().clone()
        save_file(recorded, cases, metadata={"source": "executorch"})
        return "ran"

    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        # A child each: a program may take its process down, and loading the reference takes seconds.
        child = os.fork()
        if child == 0:
            signal.alarm(TIME_LIMIT)
            try:
                said = answer(*line.split())
            except Exception as error:
                said = "refused " + " ".join(str(error).split())[:200]
            print(said, file=answers, flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            print("died", file=answers, flush=True)


class Reference:
    """The worker."""

    def __init__(self):
        command = [sys.executable, os.path.abspath(__file__), "--worker"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen(command, text=True, **pipes)
        if self.process.stdout.readline().strip() != "ready":
            sys.exit("this Python cannot load the reference: are executorch, torch and safetensors installed?")

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def stop(self):
        self.process.kill()


def edgepack(binary, *words):
    """Exit status and everything that was printed; 124 if it took too long."""
    try:
        done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=TIME_LIMIT)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return 124, f"took more than {TIME_LIMIT} seconds"


def places(tensors):
    """Where planned tensors are: memory, first byte, end. An element takes 16 bytes at most."""
    for rest in tensors:
        found = re.match(r"(\w+)\[([\d, ]*)\].* at (\d+):(\d+)", rest + " ")
        if found:
            bits = re.search(r"\d+$", found[1])
            size = int(bits[0]) // 8 if bits and found[1][0] != "c" else 1 if found[1] == "bool" else 16
            for extent in filter(None, found[2].split(", ")):
                size *= int(extent)
            yield int(found[3]), int(found[4]), int(found[4]) + size


def with_inputs(text):
    """The program with everything it reads before it writes it as an input, and whether it can be compared."""
    tensors = dict(re.findall(r"^      (%\d+) = tensor (.*)$", text, re.M))
    lists = {name: items.split(", ") for name, items in re.findall(r"^      (%\d+) = \w*tensors \[(.*)\]$", text, re.M)}
    results = {value for line in re.findall(r"^    outputs \[(.*)\]$", text, re.M) for value in line.split(", ")}
    written, free = set(), []
    for line in re.findall(r"^          \w+::[\w.]+\((.*)\)$", text, re.M):
        values = line.split(", ")
        # The last result comes twice, as itself or in the list of all.
        outs = set(lists.get(values[-1], [values[-1]]))
        for value in values:
            for tensor in lists.get(value, [value]):
                if tensor in tensors and tensor not in outs | written | set(free) and " constant " not in tensors[tensor]:
                    free.append(tensor)
        # In place: an argument before the results.
        free += sorted(out for out in outs & set(values[: -1 - len(outs)]) - written - set(free) if out in tensors)
        written |= outs
    text = re.sub(r"^    inputs \[.*\]$", f"    inputs [{', '.join(free)}]", text, count=1, flags=re.M)
    # A moved tensor and where it went are one tensor for the reference from then on.
    moves = re.findall(r"^          move (%\d+) -> ", text, re.M)
    # Neither does it look whether what it writes is what it reads, nor, in many operators, in which order.
    taken = sorted(places(tensors.values()))
    shared = any(a[0] == b[0] and b[1] < a[2] for a, b in zip(taken, taken[1:]))
    shared |= any(" order [" in rest for rest in tensors.values())
    # Neither is a bool that is neither 0 nor 1 decided, nor an integer of what is not a number.
    shared |= any(rest.startswith("bool") and " constant " in rest for rest in tensors.values())
    infinite = re.search(r" = double -?(inf|nan)", text, re.I) and any(re.match("[iu]", rest) for rest in tensors.values())
    shared |= bool(infinite) or any(value in tensors for value in moves)
    return text, bool(results) and not results & set(free) and not shared


def make(binary, seed, program):
    """Writes program `seed`; returns the names of its operators, and whether its answer is decided by its inputs."""
    for words in (["smith", "--seed", str(seed), "-o", program], ["print", program, "-o", program + ".text"]):
        status, said = edgepack(binary, *words)
        if status != 0:
            sys.exit(f"seed {seed}: {words[0]} failed: {said}")
    with open(program + ".text") as file:
        text, decided = with_inputs(file.read())
    with open(program + ".text", "w") as file:
        file.write(text)
    status, said = edgepack(binary, "parse", program + ".text", "-o", program)
    if status != 0:
        sys.exit(f"seed {seed}: its text is not a program: {said}")
    names = {f"{name}.{overload}" for name, overload in re.findall(r'^      operator "(.*?)" "(.*?)"', text, re.M)}
    return names, decided and not any(UNCOMPARABLE.match(name) for name in names)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--edgepack", default="target/release/edgepack")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", default="fuzz/artifacts/reference")
    parser.add_argument("--every", type=int, default=500)
    options = parser.parse_args()
    reference, counts, operators = Reference(), collections.Counter(), collections.Counter()
    findings, refusals, start, seed = 0, collections.Counter(), time.monotonic(), options.seed

    def report():
        agreed = sum(1 for count in operators.values() if count)
        print(f"seeds {options.seed} to {seed - 1}: {json.dumps(counts)}, {agreed} operators agreed", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        program, cases = os.path.join(folder, "program.pte"), os.path.join(folder, "cases.safetensors")
        try:
            while time.monotonic() - start < options.seconds:
                names, decided = make(options.edgepack, seed, program)
                outcome = finding = None
                if not decided:
                    outcome = "left out"
                else:
                    reply = reference.ask(program, seed, cases)
                    outcome = {"ran": None, "died": "reference died"}.get(reply, "reference refused")
                    if outcome is not None:
                        refusals[re.sub(r"\d+", "N", reply) + (f": {sorted(names)}" if reply == "died" else "")] += 1
                if outcome is None:
                    status, said = edgepack(options.edgepack, "check", program, cases)
                    outcome = {0: "agreed", 1: "differs"}.get(status, "fails here only")
                    refused = re.search(r"instructions\[\d+\] \((.*)\): (.*) \((NotSupported|InvalidArgument)\)", said)
                    if refused:
                        outcome = "refused here only"
                        refusals[f"here: {refused[1]}: {refused[2]}"] += 1
                    elif status == 1 and any(KNOWN.match(name) for name in names):
                        outcome = "known to differ"
                    elif status == 1 and re.search(r"\bc(64|128)\[", said) and any(map(KNOWN_COMPLEX.match, names)):
                        outcome = "known to differ"
                    elif status != 0:
                        finding = said
                    if status == 0:
                        operators.update(names)
                if finding is not None:
                    findings += 1
                    os.makedirs(options.out, exist_ok=True)
                    for path in (program, cases):
                        kept = os.path.join(options.out, f"seed-{seed}{os.path.splitext(path)[1]}")
                        with open(path, "rb") as source, open(kept, "wb") as target:
                            target.write(source.read())
                    first = next((line for line in finding.splitlines() if "ok" not in line.split()), "")
                    print(f"seed {seed} ({', '.join(sorted(names))}) {outcome}: {first.strip()}", flush=True)
                counts[outcome] += 1
                seed += 1
                if (seed - options.seed) % options.every == 0:
                    report()
        except KeyboardInterrupt:
            pass
        finally:
            reference.stop()
    report()
    for why, count in refusals.most_common(40):
        print(f"{count} {why}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    worker() if "--worker" in sys.argv else main()
