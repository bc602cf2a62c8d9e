"""The command as a function: files of any kind in, documents and bytes out."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from . import _edgepack
from ._errors import Error, make

#: A file to read: its path, its bytes, or an object with `read`.
Source = Any

#: Classes of exceptions by the exit status of the command.
_CLASSES = {1: "InvalidFile", 2: "UsageError", 3: "AccessError", 4: "RunError"}


def content(source: Source) -> bytes | None:
    """The bytes of a source that is not a path."""
    if isinstance(source, (str, os.PathLike)):
        return None
    if hasattr(source, "read"):
        source = source.read()
        if isinstance(source, str):
            raise TypeError('the file is open as text: open it with mode "rb"')
    if isinstance(source, bytes):
        return source
    try:
        return bytes(memoryview(source).cast("B"))
    except TypeError:
        kind = type(source).__name__
        raise TypeError(f"a path, bytes or a file opened for reading is wanted, not {kind}") from None


def _path(source: str | os.PathLike[str]) -> str:
    path = os.fspath(source)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    # Neither an option nor the name of standard input.
    return os.path.join(".", path) if path.startswith("-") else path


@contextlib.contextmanager
def files(*sources: Source, stdin_taken: bool = False, suffix: str = "") -> Iterator[tuple[list[str], bytes | None]]:
    """Names of files for a command line. The first that is not a file is standard input, others are put into a folder."""
    stdin: bytes | None = None
    names: list[str] = []
    with contextlib.ExitStack() as stack:
        folder: str | None = None
        for index, source in enumerate(sources):
            data = content(source)
            if data is None:
                names.append(_path(source))
            elif stdin is None and not stdin_taken:
                stdin = data
                names.append("-")
            else:
                if folder is None:
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="edgepack"))
                name = os.path.join(folder, f"{index}{suffix}")
                with open(name, "wb") as file:
                    file.write(data)
                names.append(name)
        yield names, stdin


def helper() -> str | None:
    """The installed command, which runs the code of packages in a process of its own."""
    import sysconfig

    name = os.path.join(sysconfig.get_path("scripts"), "edgepack.exe" if os.name == "nt" else "edgepack")
    return name if os.access(name, os.X_OK) else None


def run(args: Sequence[str | os.PathLike[str]], stdin: bytes | None = None) -> tuple[int, bytes, str]:
    """Runs a command line: exit status, standard output, standard error."""
    line = [os.fspath(arg) for arg in args]
    status, out, err = _edgepack.command(line, stdin, helper())
    return status, out, err.decode("utf-8", "replace")


def failure(status: int, message: str) -> Error:
    """The exception for a command that could not finish."""
    kind = _CLASSES.get(status, "Error")
    if status == 3 and "No such file or directory" in message:
        kind = "FileMissing"
    return make(kind, message)


def _complaint(err: str) -> str:
    lines = err.strip().splitlines()
    text = "\n".join(lines)
    return text.removeprefix("error: ") or "the command failed"


def document(args: Sequence[Any], stdin: bytes | None = None, fine: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The document of a command, of one of these exit statuses; an exception for others."""
    status, out, err = run([*args, "--json"], stdin)
    parsed: Any = None
    if out.strip():
        parsed = json.loads(out)
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict):
        raise failure(status, str(parsed["error"]["message"]))
    if status not in fine or not isinstance(parsed, dict):
        raise failure(status, _complaint(err))
    return parsed


def output(args: Sequence[Any], stdin: bytes | None = None) -> bytes:
    """What a command writes to standard output; an exception if it does not end well."""
    status, out, err = run(args, stdin)
    if status != 0:
        raise failure(status, _complaint(err))
    return out


def options(given: dict[str, Any]) -> list[str]:
    """Options of a command line: `like_reference=True` is `--like-reference`, a list is an option several times."""
    line: list[str] = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            line.append(option)
        elif value is None or value is False:
            continue
        else:
            several = value if isinstance(value, (list, tuple)) else [value]
            # With an equals sign no value is taken for an option.
            line.extend(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}" for one in several)
    return line
