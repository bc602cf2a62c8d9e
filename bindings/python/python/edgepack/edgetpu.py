"""The host side of Edge TPU models: what they ask of the chip, and what it does for them. `edgepack.inspect`, `verify`, `size`,
`dump`, `build` and `diff` take such models, too.
"""

from __future__ import annotations

from typing import Any

from . import _command
from ._command import Source

__all__ = ["caching", "dma", "plan"]


def caching(*models: Source) -> dict[str, Any]:
    """Which models share the chip, and what of them stays on it."""
    return _several("caching", models)


def plan(*models: Source, **options: Any) -> dict[str, Any]:
    """Whether models fit the chip together, and whether segments of a pipeline meet."""
    return _several("plan", models, **options)


def dma(model: Source, **options: Any) -> dict[str, Any]:
    """The transfers of a run."""
    return _several("dma", (model,), **options)


def _several(step: str, models: tuple[Source, ...], **options: Any) -> dict[str, Any]:
    with _command.files(*models, suffix=".tflite") as (paths, stdin):
        return _command.document(["darwinn", step, *paths, *_command.options(options)], stdin, fine=(0, 1))
