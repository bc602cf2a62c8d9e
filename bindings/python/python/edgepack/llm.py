"""Language models: a prompt goes in, text comes out.

A model is a program and its tokenizer; a session is one text over it. `Session.stream` gives the text piece by piece, as it
becomes certain, from a thread of its own; `generate` waits for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._edgepack import Generation, LanguageModel, Session

__all__ = ["Generation", "LanguageModel", "Session", "Text", "generate"]


class Text(NamedTuple):
    """A text and why it ended: `end` is "stop_token", "stop_string", "max_new_tokens", "context_full" or "closed"."""

    text: str
    end: str
    stop: str | None
    prompt_tokens: int
    new_tokens: int
    prefill_seconds: float
    decode_seconds: float


def generate(session: Session | LanguageModel, prompt: str | Sequence[dict[str, Any]], **options: Any) -> Text:
    """The text behind a prompt; `options` are those of `Session.stream`. With a model the session is a new one."""
    if isinstance(session, LanguageModel):
        session = session.session()
    made = session.stream(prompt, **options).result()
    if made is None:
        return Text("", "closed", None, 0, 0, 0.0, 0.0)
    return Text(**made)
