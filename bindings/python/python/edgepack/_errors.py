"""Exceptions: every one of them is an `Error`, with the rule, path and offset of what is wrong where there is such a place."""

from __future__ import annotations

from typing import Any

from ._types import Finding


class Error(Exception):
    """Something that edgepack refuses.

    `rule`, `path` and `offset` are those of the first error-level finding of a file; `path` alone is the place of an
    instruction that failed. `code` is the name of ExecuTorch's error for it, `findings` are all findings.
    """

    rule: str | None = None
    path: str | None = None
    offset: int | None = None
    code: str | None = None
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidFile(Error):
    """A file breaks rules: `findings` has all of them."""


class AccessError(Error, OSError):
    """A file cannot be read or written."""


class FileMissing(AccessError, FileNotFoundError):
    """There is no such file."""


class NotFound(Error, KeyError):
    """There is no method, tensor or key of this name."""

    name: str | None = None


class LimitError(Error, MemoryError):
    """More memory than there is, or than the limits allow."""


class LoadError(Error):
    """A method cannot be loaded: `missing_operators` and `missing_backends` are those that this build does not have."""

    missing_operators: tuple[str, ...] = ()
    missing_backends: tuple[str, ...] = ()


class RunError(Error):
    """A run failed."""


class InputError(RunError, ValueError):
    """An input, or an array for an output, does not fit: `index` is its number."""

    index: int | None = None


class EditError(Error, ValueError):
    """A file cannot be changed that way."""


class TextError(Error):
    """A language model, its tokenizer or its template cannot do this."""


class UsageError(Error, ValueError):
    """Arguments that make no sense."""


class ClosedError(Error, ValueError):
    """Something that was closed is used."""


class InternalError(Error):
    """A fault of edgepack itself."""


def make(kind: str, message: str, **fields: Any) -> Error:
    """Makes the exception of a class by name; `findings` are plain tuples here."""
    error = globals()[kind](message)
    findings = tuple(Finding(*row) for row in fields.pop("findings", ()))
    error.findings = findings
    first = next((finding for finding in findings if finding.severity == "error"), None)
    if first is not None:
        error.rule, error.path, error.offset = first.rule, first.path, first.offset
    for name, value in fields.items():
        if value is not None:
            setattr(error, name, value)
    return error
