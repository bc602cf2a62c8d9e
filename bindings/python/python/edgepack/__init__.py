"""Read, write, verify, load and run on-device model packages: ExecuTorch programs and data files, Edge TPU models, packages
of TVM's Model Library Format, and what `torch.export` saved.

A file is a path, bytes, or an object with `read`, here and everywhere in this package:

>>> import edgepack
>>> try:
...     edgepack.verify(bytes(100))
... except edgepack.AccessError as error:
...     print(type(error).__name__)
AccessError
"""

from __future__ import annotations

import json as _json
import os as _os
from typing import Any

from . import _command, edit, edgetpu, llm, mlf
from ._arrays import RawTensor
from ._command import Source
from ._edgepack import DataFile, Handle, Method, MethodBuilder, Program, ProgramBuilder, ProgramMethod, __version__
from ._errors import (
    AccessError,
    ClosedError,
    EditError,
    Error,
    FileMissing,
    InputError,
    InternalError,
    InvalidFile,
    LimitError,
    LoadError,
    NotFound,
    RunError,
    TextError,
    UsageError,
)
from ._types import Finding, Value

__all__ = [
    "AccessError",
    "ClosedError",
    "DataFile",
    "EditError",
    "Error",
    "FileMissing",
    "Finding",
    "Handle",
    "InputError",
    "InternalError",
    "InvalidFile",
    "LimitError",
    "LoadError",
    "Method",
    "MethodBuilder",
    "NotFound",
    "Program",
    "ProgramBuilder",
    "ProgramMethod",
    "RawTensor",
    "RunError",
    "Source",
    "TextError",
    "UsageError",
    "Value",
    "__version__",
    "build",
    "convert",
    "diff",
    "dump",
    "edgetpu",
    "edit",
    "explain",
    "extract",
    "inspect",
    "llm",
    "load",
    "lower",
    "mlf",
    "mutate",
    "names",
    "ops",
    "parse",
    "print_text",
    "size",
    "smith",
    "verify",
]


def load(program: Source, method: str = "forward", **options: Any) -> Method:
    """Opens a program and loads one of its methods; `options` are those of `ProgramMethod.load`."""
    return Program.open(program).method(method).load(**options)


def verify(file: Source, *, data: Source | list[Source] | None = None, limits: str | None = None) -> list[Finding]:
    """Every finding about a file of any kind, and about the data files next to it: by rule, path and offset.

    A file that breaks no rule has an empty list, or one of warnings and notes. A file that cannot be read, or is of no known
    kind, is an `AccessError`.
    """
    several = [] if data is None else list(data) if isinstance(data, (list, tuple)) else [data]
    with _command.files(file, *several) as (paths, stdin):
        line: list[str] = ["verify", paths[0], *_command.options({"limits": limits, "data": paths[1:]})]
        document = _command.document(line, stdin, fine=(0, 1, 3))
    findings = []
    for result in document["files"]:
        if result["error"] is not None:
            raise _command.failure(result["status"], result["error"])
        findings += [Finding(**finding) for finding in result["findings"]]
    return findings


def _document(command: str, file: Source, fine: tuple[int, ...] = (0,), **options: Any) -> dict[str, Any]:
    with _command.files(file) as (paths, stdin):
        return _command.document([command, paths[0], *_command.options(options)], stdin, fine)


def inspect(file: Source, *, all: bool = False, limits: str | None = None) -> dict[str, Any]:
    """Everything that is in a file, broken ones included: the document of `edgepack inspect --json`."""
    return _document("inspect", file, (0, 1), all=all, limits=limits)


def ops(file: Source, **options: Any) -> dict[str, Any]:
    """Operators and delegates that a file needs, and which of them run here: the document of `edgepack ops --json`."""
    return _document("ops", file, (0, 4), **options)


def size(file: Source, **options: Any) -> dict[str, Any]:
    """Where the bytes of a file are: the document of `edgepack size --json`."""
    return _document("size", file, **options)


def names(file: Source) -> list[dict[str, Any]]:
    """What has a name in a program or data file: name, type, bytes."""
    entries: list[dict[str, Any]] = _document("list", file)["entries"]
    return entries


def explain(what: str) -> dict[str, Any]:
    """What a rule or an error code of ExecuTorch means, and what usually causes it."""
    if what.startswith("-"):
        raise UsageError(f"{what} is not a rule or an error code")
    return _command.document(["explain", what])


def diff(first: Source, second: Source, **options: Any) -> dict[str, Any]:
    """Differences of two files: the document of `edgepack diff --json`, with options of that command such as `rtol`."""
    with _command.files(first, second) as (paths, stdin):
        return _command.document(["diff", *paths, *_command.options(options)], stdin, fine=(0, 1))


def lower(archives: Source | dict[str, Source], **options: Any) -> bytes:
    """Lowers what `torch.export.save` wrote to a program; of a dictionary each archive becomes the method of its name.

    Options are those of `edgepack lower`: `like_reference=True`, `plan="greedy"`, `external_weights="weights.ptd"`.
    """
    named = archives if isinstance(archives, dict) else {"": archives}
    with _command.files(*named.values(), stdin_taken=True, suffix=".pt2") as (paths, _):
        line = [f"{name}={path}" if name else path for name, path in zip(named, paths)]
        return _command.output(["lower", *line, "-o", "-", *_command.options(options)])


def dump(file: Source, *, layout: bool = False) -> dict[str, Any]:
    """The whole structure of a file as a dictionary, which `build` makes the file of again; byte for byte with `layout`."""
    with _command.files(file) as (paths, stdin):
        tree: dict[str, Any] = _json.loads(_command.output(["dump", paths[0], *_command.options({"layout": layout})], stdin))
        return tree


def build(document: dict[str, Any]) -> bytes:
    """Makes the file that `dump` described. It is verified."""
    return _command.output(["build", "-", "-o", "-"], _json.dumps(document).encode())


def print_text(program: Source) -> str:
    """The methods of a program as readable assembly."""
    with _command.files(program) as (paths, stdin):
        return _command.output(["print", paths[0]], stdin).decode()


def parse(text: str) -> bytes:
    """Makes the program that `print_text` wrote, or that was written by hand."""
    return _command.output(["parse", "-", "-o", "-"], text.encode())


def smith(seed: int = 1, *, any: bool = False) -> bytes:
    """A valid program of a seed, which runs; with `any` also one that a runtime refuses."""
    return _command.output(["smith", "-o", "-", *_command.options({"seed": seed, "any": any})])


def mutate(file: Source, seed: int = 1) -> bytes:
    """A variant of a file that is broken, or at least another, where it matters to readers."""
    with _command.files(file) as (paths, stdin):
        return _command.output(["mutate", paths[0], "-o", "-", *_command.options({"seed": seed})], stdin)


def extract(file: Source, **piece: Any) -> bytes:
    """A raw piece of a file: `segment=0`, `delegate=0`, `named="key"`, `package=0`."""
    with _command.files(file) as (paths, stdin):
        return _command.output(["extract", paths[0], "-o", "-", *_command.options(piece)], stdin)


def convert(source: str | _os.PathLike[str], destination: str | _os.PathLike[str], **options: Any) -> None:
    """Converts a data file to safetensors or back, or a library package to another version; by the names of the files."""
    line = ["convert", _command._path(source), _command._path(destination), *_command.options(options)]
    status, _, err = _command.run(line)
    if status != 0:
        raise _command.failure(status, _command._complaint(err))
