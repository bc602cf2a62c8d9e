"""Where the files are, and a line about how many recorded cases ran."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

import edgepack

ROOT = Path(os.environ.get("EDGEPACK_ROOT", Path(__file__).resolve().parents[3]))
DATA = ROOT / "tests" / "data"
CORPUS = DATA / "corpus"
MODELS = CORPUS / "models"

#: Recorded cases by folder and outcome.
CASES: Counter[tuple[str, str]] = Counter()


@pytest.fixture
def mlp() -> edgepack.Method:
    """A small program: f32[3, 8] in, f32[3, 4] out."""
    return edgepack.Program.open(MODELS / "mlp_portable.pte").method("forward").load()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    folders = sorted({folder for folder, _ in CASES})
    for folder in folders:
        counts = ", ".join(f"{CASES[folder, outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
        terminalreporter.write_line(f"recorded cases, {folder}: {counts}")
    if not os.environ.get("EDGEPACK_CORPUS"):
        terminalreporter.write_line("EDGEPACK_CORPUS is not set: only the corpus of the repository ran")
