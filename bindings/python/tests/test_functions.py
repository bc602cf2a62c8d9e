"""Functions over files: their documents, and bytes that they make."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import edgepack
import recorded
from conftest import CORPUS, DATA, MODELS, ROOT

MLP = MODELS / "mlp_portable.pte"


def test_verify_gives_findings() -> None:
    assert edgepack.verify(MLP) == []
    assert edgepack.verify(io.BytesIO(MLP.read_bytes()), limits="hostile") == []
    line = json.loads((DATA / "hostile" / "pte" / "manifest.json").read_text())[2]
    (first, *_) = edgepack.verify(DATA / "hostile" / "pte" / line["file"])
    assert isinstance(first, edgepack.Finding)
    assert (first.rule, first.severity, first.path) == (line["rule"], line["severity"], line["path"])


def test_verify_pairs_programs_with_data_files() -> None:
    path = MODELS / "external_portable.pte"
    (data,) = MODELS.glob("external_portable.*.ptd")
    assert edgepack.verify(path, data=data) == []
    other = CORPUS / "data" / "tensors.ptd"
    assert edgepack.verify(path.read_bytes(), data=[other.read_bytes()]) != []


def test_documents_are_dictionaries() -> None:
    document = edgepack.inspect(MLP)
    assert document["schema"] == "edgepack/inspect/1"
    assert edgepack.inspect(MLP.read_bytes(), all=True)["schema"] == "edgepack/inspect/1"
    assert edgepack.ops(MLP)["schema"] == "edgepack/ops/1"
    assert edgepack.size(MLP)["schema"] == "edgepack/size/1"
    assert edgepack.explain("PTE-D20")["schema"] == "edgepack/explain/1"
    assert {entry["name"] for entry in edgepack.names(MLP)} == set(edgepack.Program.open(MLP).weights())
    with pytest.raises(edgepack.UsageError):
        edgepack.ops(MLP, no_such_option=True)
    with pytest.raises(edgepack.Error):
        edgepack.explain("--help")


def test_diff_tells_what_differs() -> None:
    assert edgepack.diff(MLP, MLP.read_bytes())["differences"] == []
    tensors = {name: np.asarray(edgepack.Program.open(MLP).weight(name)) + 1 for name in list(edgepack.Program.open(MLP).weights())[:1]}
    other = edgepack.edit.patch(MLP, tensors)
    assert edgepack.diff(MLP, other)["differences"] != []
    assert edgepack.edit.diff(MLP.read_bytes(), other, atol=2.0)["differences"] == []


def test_split_and_join_are_inverse() -> None:
    parts = edgepack.edit.split(MLP)
    assert parts.names and len(parts.program) < MLP.stat().st_size
    inputs = np.ones((3, 8), np.float32)
    want = edgepack.load(MLP)(inputs)
    with pytest.raises(edgepack.Error):
        edgepack.load(parts.program)
    np.testing.assert_array_equal(edgepack.load(parts.program, data=parts.data)(inputs), want)
    joined = edgepack.edit.join(parts.program, parts.data)
    np.testing.assert_array_equal(edgepack.load(joined)(inputs), want)
    assert edgepack.diff(MLP, joined, atol=0)["differences"] == []
    some = edgepack.edit.split(MLP, matching=parts.names[0])
    assert some.names == parts.names[:1]
    with pytest.raises(edgepack.Error):
        edgepack.edit.join(MLP, [MLP])


def test_patch_replaces_tensors() -> None:
    program = edgepack.Program.open(MLP)
    name = next(name for name, fact in program.weights().items() if fact["dtype"] == "float32")
    new = np.random.default_rng(1).random(program.weight(name).shape, np.float32)
    patched = edgepack.edit.patch(MLP.read_bytes(), {name: new})
    np.testing.assert_array_equal(edgepack.Program.open(patched).weight(name), new)
    assert len(patched) == MLP.stat().st_size
    for wrong in [new.astype(np.float64), new[:1], "text"]:
        with pytest.raises(edgepack.EditError):
            edgepack.edit.patch(MLP, {name: wrong})
    with pytest.raises(edgepack.NotFound):
        edgepack.edit.patch(MLP, {"nothing": new})


def test_data_files_of_arrays() -> None:
    arrays = {
        "weight": np.arange(12, dtype=np.float32).reshape(4, 3),
        "half": np.arange(4, dtype=np.float16),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.int64),
        "raw": edgepack.RawTensor("bfloat16", (2,), b"\x80\x3f\x00\x40"),
    }
    data = edgepack.DataFile.open(edgepack.edit.data_file(arrays))
    assert sorted(data.keys()) == sorted(arrays) and len(data) == 5
    assert "weight" in data and "other" not in data
    assert set(data) == set(arrays)
    for name in ("weight", "half", "flags", "empty"):
        have = data[name]
        assert have.dtype == arrays[name].dtype and not have.flags.writeable
        np.testing.assert_array_equal(have, arrays[name])
    assert data.describe("raw") == {"dtype": "bfloat16", "shape": (2,), "bytes": 4}
    np.testing.assert_array_equal(recorded.floats(data["raw"])[1], [1.0, 2.0])
    with pytest.raises(KeyError):
        data["other"]
    data.close()
    with pytest.raises(edgepack.ClosedError):
        data["weight"]


def test_recorded_data_files() -> None:
    data = edgepack.DataFile.open(CORPUS / "data" / "tensors.ptd", mmap=True)
    for name, want in recorded.read(CORPUS / "data" / "tensors.safetensors").items():
        if name in data:
            recorded.check(data[name], want)


def test_lower_makes_programs(tmp_path: Path) -> None:
    archive = next(path for path in sorted((CORPUS / "lowering").glob("*.pt2")) if path.stem == "norms")
    program = edgepack.lower(archive)
    assert edgepack.verify(program) == []
    assert edgepack.Program.open(program).methods == ["forward"]
    two = edgepack.lower({"first": archive, "second": archive.read_bytes()}, plan="greedy", like_reference=True)
    assert edgepack.Program.open(two).methods == ["first", "second"]
    with pytest.raises(edgepack.RunError, match="my::join"):
        edgepack.lower(CORPUS / "lower" / "join.pt2")
    with pytest.raises(edgepack.Error):
        edgepack.lower(b"not an archive")
    with pytest.raises(edgepack.UsageError):
        edgepack.lower(archive, plan="magic")


def test_files_are_taken_apart_and_built() -> None:
    document = edgepack.dump(MLP, layout=True)
    assert edgepack.build(document) == MLP.read_bytes()
    assert edgepack.diff(edgepack.build(edgepack.dump(MLP)), MLP)["differences"] == []
    text = edgepack.print_text(MLP)
    assert "forward" in text
    assert edgepack.diff(edgepack.parse(text), MLP)["differences"] == []
    with pytest.raises(edgepack.Error):
        edgepack.build({"no": "dump"})
    with pytest.raises(edgepack.Error):
        edgepack.parse("nonsense")
    assert len(edgepack.extract(MLP, segment=0)) > 0


def test_smith_makes_programs_that_run() -> None:
    assert edgepack.smith(3) == edgepack.smith(3) != edgepack.smith(4)
    for seed in range(1, 6):
        program = edgepack.smith(seed)
        assert [finding for finding in edgepack.verify(program) if finding.severity == "error"] == []
        assert edgepack.Program.open(program).methods
    assert edgepack.mutate(MLP, 2) != MLP.read_bytes()


def test_convert_goes_by_names(tmp_path: Path) -> None:
    there, back = tmp_path / "t.safetensors", tmp_path / "t.ptd"
    edgepack.convert(CORPUS / "data" / "tensors.ptd", there)
    edgepack.convert(there, back)
    assert edgepack.DataFile.open(back).keys()
    with pytest.raises(edgepack.FileMissing):
        edgepack.convert(tmp_path / "none.ptd", tmp_path / "x.safetensors")


def test_names_that_look_like_options_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ["-", "--json", "-h.pte"]:
        Path(name).write_bytes(MLP.read_bytes())
        assert edgepack.verify(name) == []
        assert edgepack.inspect(Path(name))["schema"] == "edgepack/inspect/1"


def test_edge_tpu_models() -> None:
    left, right = CORPUS / "edgetpu" / "left.tflite", CORPUS / "edgetpu" / "right.tflite"
    assert edgepack.inspect(left)["schema"] == "edgepack/inspect/1"
    assert edgepack.verify(left.read_bytes()) is not None
    assert edgepack.edgetpu.caching(left, right.read_bytes())["schema"] == "edgepack/darwinn/1"
    assert edgepack.edgetpu.plan(left, right)["schema"] == "edgepack/darwinn/1"
    assert edgepack.edgetpu.dma(left)["schema"] == "edgepack/darwinn/1"
    assert edgepack.build(edgepack.dump(left, layout=True)) == left.read_bytes()


def test_library_packages() -> None:
    package = DATA / "hostile" / "mlf" / "other_attr.tar"
    document = edgepack.inspect(package)
    assert document["schema"] == "edgepack/inspect/1"
    with pytest.raises(edgepack.RunError):
        edgepack.mlf.run(package, [np.zeros(2, np.float32)])


def test_the_version_is_that_of_the_crates() -> None:
    assert f'version = "{edgepack.__version__}"' in (ROOT / "Cargo.toml").read_text()
