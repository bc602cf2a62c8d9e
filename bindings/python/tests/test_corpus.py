"""Recorded runs of real programs, replayed through the wheel."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import edgepack
import recorded
from conftest import CASES, CORPUS


def cases() -> list[pytest.ParameterSet]:
    folders = [("own", CORPUS)]
    larger = os.environ.get("EDGEPACK_CORPUS")
    if larger:
        folders.append(("larger", Path(larger)))
    found = []
    for whose, folder in folders:
        for kind in ("models", "ops", "ops_xnnpack", "opinfo", "llm"):
            for program in sorted((folder / kind).glob("*.pte")):
                if program.with_suffix(".safetensors").exists():
                    found.append(pytest.param(whose, program, id=f"{whose}-{kind}-{program.stem}"))
    assert len(found) > 100
    return found


# Programs that their exporter wrote wrong, which are refused: `tests/cases/corpus.rs` skips them by the same reasons.
WRONG = re.compile(r"sizes \[.*\] for a result of \[|the output needs sizes .*, but holds at most")


def is_refused(error: edgepack.Error) -> bool:
    lacks = isinstance(error, edgepack.LoadError) and (error.missing_backends or error.missing_operators)
    return bool(lacks) or WRONG.search(str(error)) is not None


@pytest.mark.parametrize(("whose", "path"), cases())
def test_recorded_runs(whose: str, path: Path) -> None:
    program = edgepack.Program.open(path)
    loaded: dict[str, edgepack.Method] = {}
    methods = program.methods
    reference = recorded.source(path.with_suffix(".safetensors")) == "executorch"
    try:
        for method, inputs, outputs in recorded.runs(path.with_suffix(".safetensors")):
            if method not in loaded:
                data = recorded.data_files(path)
                loaded[method] = program.method(method).load(data=data, threads=1, reference=reference)
            run = loaded[method]
            assert method in methods
            given = [recorded.argument(inputs.get(index), wanted) for index, wanted in enumerate(run.inputs)]
            have = run.run(*given)
            assert len(have) == len(run.outputs)
            for index, (output, about) in enumerate(zip(have, run.outputs)):
                if about.kind == "str":
                    assert isinstance(output, str)
                else:
                    recorded.check(output, outputs.get(index))
    except edgepack.Error as error:
        if not is_refused(error):
            CASES[whose, "failed"] += 1
            raise
        CASES[whose, "skipped"] += 1
        pytest.skip(str(error))
    except BaseException:
        CASES[whose, "failed"] += 1
        raise
    CASES[whose, "passed"] += 1
