"""Bad files of every family: an exception or findings, never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import edgepack
from conftest import DATA, MODELS

HOSTILE = DATA / "hostile"


def lines() -> list[pytest.ParameterSet]:
    found = []
    for manifest in sorted(HOSTILE.glob("*/manifest.json")):
        for line in json.loads(manifest.read_text()):
            found.append(pytest.param(manifest.parent, line, id=f"{manifest.parent.name}-{line['id']}"))
    assert len(found) > 300
    return found


@pytest.mark.parametrize(("folder", "line"), lines())
def test_bad_files_are_answered(folder: Path, line: dict) -> None:
    path = folder / line["file"]
    data = path.read_bytes()
    findings: list[edgepack.Finding] | None
    try:
        findings = edgepack.verify(data, limits="hostile")
    except edgepack.Error:
        findings = None
    if findings is not None and folder.name == "pte":
        assert line["rule"] in [finding.rule for finding in findings] or "visits" in line
    for attempt in [edgepack.inspect, edgepack.size, edgepack.names]:
        try:
            attempt(path)
        except edgepack.Error:
            pass
    if folder.name in ("pte", "xnnpack"):
        try:
            program = edgepack.Program.open(data, limits="hostile")
            for name in program.methods:
                program.method(name).load(threads=1)
        except edgepack.Error as error:
            assert str(error)
    if folder.name == "ptd":
        try:
            opened = edgepack.DataFile.open(data, limits="hostile")
            for key in opened:
                opened[key]
        except edgepack.Error as error:
            assert str(error)


def test_cut_and_changed_programs_are_answered() -> None:
    whole = (MODELS / "mlp_portable.pte").read_bytes()
    refused = 0
    for length in range(0, len(whole), max(1, len(whole) // 97)):
        try:
            edgepack.Program.open(whole[:length], limits="hostile")
        except edgepack.Error:
            refused += 1
    assert refused > 50
    for seed in range(40):
        variant = edgepack.mutate(whole, seed)
        try:
            program = edgepack.Program.open(variant, limits="hostile")
            for name in program.methods:
                method = program.method(name).load(threads=1)
                method.run(*[value.value for value in method.inputs])
        except edgepack.Error:
            pass
