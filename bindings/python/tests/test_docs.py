"""The examples of the pages run as they are written."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

import edgepack
from conftest import CORPUS, MODELS, ROOT


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(MODELS / "mlp_portable.pte", tmp_path / "model.pte")
    for name in ("story.pte", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(CORPUS / "llm_demo" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["docs/python.md", "bindings/python/README.md"])
def test_pages_run(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks((ROOT / page).read_text())
    assert found
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block, page, "exec"), names)
    assert capsys.readouterr().out


def test_the_quick_start_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    section = text.split("## From Python", 1)[1].split("\n## ", 1)[0]
    (block,) = blocks(section)
    monkeypatch.chdir(ROOT)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[")


def test_the_docstrings_are_true() -> None:
    results = doctest.testmod(edgepack)
    assert results.attempted > 0 and results.failed == 0


def test_every_exception_is_on_the_page() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    for name in edgepack.__all__:
        thing = getattr(edgepack, name)
        if isinstance(thing, type) and issubclass(thing, edgepack.Error):
            assert f"`{name}`" in page or name == "Error"
