"""Text of a small language model: pieces, choices, conversations, and sessions that threads share."""

from __future__ import annotations

import gc
import json
import time

import pytest

import edgepack
from conftest import CORPUS
from edgepack.llm import LanguageModel, generate

DEMO = CORPUS / "llm_demo"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel.open(
        DEMO / "story.pte", DEMO / "tokenizer.json", template=DEMO / "tokenizer_config.json", threads=1
    )


def test_text_comes_in_pieces(model: LanguageModel) -> None:
    session = model.session()
    stream = session.stream("Once upon a time", max_new_tokens=12)
    pieces = list(stream)
    made = stream.result()
    assert "".join(pieces) == made["text"] and len(pieces) > 3
    assert made["end"] in ("max_new_tokens", "stop_token") and made["new_tokens"] <= 12
    again = generate(model, "Once upon a time", max_new_tokens=12)
    assert again.text == made["text"] and again.prompt_tokens == made["prompt_tokens"]
    assert list(stream) == []


def test_the_command_writes_the_same_text(model: LanguageModel) -> None:
    from edgepack import _command

    line = ["generate", DEMO / "story.pte", "-t", DEMO / "tokenizer.json", "Long ago", "-n", "10", "--quiet"]
    text = _command.output([str(arg) for arg in line]).decode()
    assert generate(model, "Long ago", max_new_tokens=10).text == text.rstrip("\n")


def test_choices_follow_the_seed(model: LanguageModel) -> None:
    options = {"max_new_tokens": 10, "temperature": 5.0, "ignore_end": True}
    texts = {generate(model, "Once", seed=seed, **options).text for seed in range(6)}
    assert len(texts) > 1
    assert generate(model, "Once", seed=3, **options).text == generate(model, "Once", seed=3, **options).text
    for wrong in [{"temperature": -1.0}, {"top_p": 0.0}, {"stop": [""]}]:
        with pytest.raises(edgepack.Error):
            generate(model, "Once", **wrong)


def test_stop_strings_are_no_part_of_the_text(model: LanguageModel) -> None:
    whole = generate(model, "Once upon a time", max_new_tokens=30).text
    made = generate(model, "Once upon a time", max_new_tokens=30, stop=[whole[5:9]])
    assert made.end == "stop_string" and made.stop == whole[5:9]
    assert whole.startswith(made.text) and whole[5:9] not in made.text


def test_conversations_go_on_where_they_were(model: LanguageModel) -> None:
    session = model.session()
    messages = [{"role": "user", "content": "Where does the owl live?"}]
    first = generate(session, messages)
    assert "owl" in first.text
    messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "Where does the fox live?"}]
    second = generate(session, messages)
    fresh = generate(model, messages)
    assert second.text == fresh.text and second.prompt_tokens < fresh.prompt_tokens
    with pytest.raises(edgepack.UsageError):
        generate(LanguageModel.open(DEMO / "story.pte", DEMO / "tokenizer.json"), messages)
    with pytest.raises(edgepack.Error):
        generate(session, [{"role": "<bad>", "content": "x"}])


def test_tokens_and_text(model: LanguageModel) -> None:
    ids = model.encode("Once upon a time")
    assert model.decode(ids) == "Once upon a time"
    assert model.context > len(ids) and model.vocabulary > max(ids)
    with pytest.raises(edgepack.TextError):
        model.decode([10_000_000])


def test_one_generation_at_a_time(model: LanguageModel) -> None:
    session = model.session()
    stream = session.stream("Once upon a time", ignore_end=True)
    next(stream)
    with pytest.raises(edgepack.TextError, match="generating"):
        generate(session, "Long ago")
    stream.close()
    assert stream.result()["end"] in ("closed", "context_full")
    session.reset()
    assert session.tokens == []
    assert generate(session, "Long ago", max_new_tokens=3).new_tokens == 3
    # One that nobody reads ends when it is dropped.
    stream = session.stream("Once upon a time", ignore_end=True)
    del stream
    gc.collect()
    began = time.monotonic()
    assert generate(session, "Long ago", max_new_tokens=3).new_tokens == 3
    assert time.monotonic() - began < 30


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(edgepack.Error):
        LanguageModel.open(CORPUS / "models" / "mlp_portable.pte", DEMO / "tokenizer.json")
    with pytest.raises(edgepack.TextError, match="tokenizer"):
        LanguageModel.open(DEMO / "story.pte", b"not a tokenizer")
    with pytest.raises(FileNotFoundError):
        LanguageModel.open(DEMO / "story.pte", "nothing.json")
    assert json.loads((DEMO / "tokenizer_config.json").read_text())
