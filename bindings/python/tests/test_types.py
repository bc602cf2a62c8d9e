"""The stub says what the native module has."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import edgepack
from edgepack import _edgepack

STUB = Path(edgepack.__file__).parent / "_edgepack.pyi"


def parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [argument.arg for argument in listed if argument is not None and argument.arg != "self"]


def compare(where: str, stub: ast.FunctionDef, real: object) -> None:
    signature = inspect.signature(real)  # type: ignore[arg-type]
    names = [name for name in signature.parameters if name != "self"]
    if stub.name.startswith("__"):
        return
    assert parameters(stub) == names, where
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    stubbed = stub.args
    pairs = [
        *zip(reversed([*stubbed.posonlyargs, *stubbed.args]), reversed(stubbed.defaults)),
        *((name, value) for name, value in zip(stubbed.kwonlyargs, stubbed.kw_defaults) if value is not None),
    ]
    said = {name.arg: ast.literal_eval(value) for name, value in pairs}
    assert said == {name: list(value) if isinstance(value, list) else value for name, value in defaults.items()}, where


def test_the_stub_is_true() -> None:
    tree = ast.parse(STUB.read_text())
    named: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            named.add(node.name)
            real = getattr(_edgepack, node.name)
            members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            public = {name for name in vars(real) if not name.startswith("_")}
            assert public == {name for name in members if not name.startswith("_")}, node.name
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    if member.name == "__buffer__":
                        continue
                    is_property = any(getattr(mark, "id", "") == "property" for mark in member.decorator_list)
                    attribute = getattr(real, member.name)
                    if is_property:
                        assert inspect.isdatadescriptor(attribute)
                    else:
                        compare(f"{node.name}.{member.name}", member, attribute)
        elif isinstance(node, ast.FunctionDef):
            named.add(node.name)
            compare(node.name, node, getattr(_edgepack, node.name))
    assert named == {name for name in dir(_edgepack) if not name.startswith("__")}


def test_the_package_says_that_it_is_typed() -> None:
    assert (STUB.parent / "py.typed").exists()


def test_everything_public_is_documented() -> None:
    for name in edgepack.__all__:
        thing = getattr(edgepack, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
