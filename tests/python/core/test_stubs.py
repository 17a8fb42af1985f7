"""The stubs of the extension modules say what the modules have: every name, every parameter with its type and default."""

import ast
import importlib
import itertools
import pathlib
import re

import medley
import pytest

MODULES = ["medley._core", "medley._analysis"]


def stub_of(name):
    file = pathlib.Path(medley.__file__).resolve().parent / f"{name.rpartition('.')[2]}.pyi"
    return ast.parse(file.read_text())


def signature(text):
    """A function's arguments and result without names of modules; defaults are the module's own."""
    node = ast.parse(text + ": ...").body[0]
    arguments = [(each.arg, plain(each.annotation)) for each in node.args.args + node.args.kwonlyargs]
    return arguments, len(node.args.defaults), plain(node.returns)


def plain(annotation):
    return re.sub(r"[\w.]*\.(\w+)", r"\1", "" if annotation is None else ast.unparse(annotation))


def from_module(function):
    """nanobind keeps defaults beside the text, as \\0, \\1 and so on."""
    assert len(function.__nb_signature__) == 1
    return signature(re.sub(r"\\\d+", "None", function.__nb_signature__[0][0]).replace("def (", "def _("))


def from_stub(node):
    copy = ast.FunctionDef(name="_", args=node.args, returns=node.returns, body=[ast.Pass()], decorator_list=[])
    return signature(ast.unparse(ast.fix_missing_locations(copy)).removesuffix(":\n    pass"))


def members(nodes):
    """Name → node of what a stub's module or class defines."""
    found = {}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def same(there, here):
    """Where nanobind knows no more than "an object", the stub may say which."""
    return there == here or there in ("object", "object | None", "list", "Sequence[tuple]")


def compare(path, value, node):
    if isinstance(value, type):
        yield from compare_members(path, value, members(node.body))
        return
    function = value.fget if isinstance(value, property) else value
    if not hasattr(function, "__nb_signature__") or path.endswith("__exit__") or not isinstance(node, ast.FunctionDef):
        return   # __exit__ has three arguments, which stubs call *args
    (arguments, defaults, result), (known, more, returned) = from_module(function), from_stub(node)
    pairs = list(itertools.zip_longest(arguments, known, fillvalue=("", "")))
    if defaults != more or not same(result, returned) or any(a != b or not same(x, y) for (a, x), (b, y) in pairs):
        yield f"{path}: the module has {arguments, defaults, result}, the stub {known, more, returned}"


def compare_members(path, owner, stub):
    own = {name: value for name, value in vars(owner).items() if not name.startswith("_") or name in stub}
    yield from (f"{path}.{name} is not in the stub" for name in sorted(own.keys() - stub.keys()))
    yield from (f"{path}.{name} is in the stub alone" for name in sorted(stub.keys() - own.keys()) if not name.startswith("__"))
    for name in sorted(own.keys() & stub.keys()):
        yield from compare(f"{path}.{name}", own[name], stub[name])


@pytest.mark.parametrize("name", MODULES)
def test_the_stub_is_what_the_module_has(name):
    module = importlib.import_module(name)
    assert not list(compare_members(name, module, members(stub_of(name).body)))


def test_a_wrong_stub_is_noticed():
    module = importlib.import_module("medley._analysis")
    stub = members(stub_of("medley._analysis").body)
    right = stub["plan"]
    stub["plan"] = ast.parse("def plan(request: PlanRequest, file: str) -> str: ...").body[0]
    assert "the stub" in "".join(compare_members("m", module, stub))
    stub["plan"] = ast.parse("def plan(request: PlanRequest, schedule: str) -> int: ...").body[0]
    assert "the stub" in "".join(compare_members("m", module, stub))
    del stub["plan"]
    assert list(compare_members("m", module, stub)) == ["m.plan is not in the stub"]
    stub["plan"], stub["plam"] = right, right
    assert list(compare_members("m", module, stub)) == ["m.plam is in the stub alone"]
