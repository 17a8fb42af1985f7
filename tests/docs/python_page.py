"""The Python functions and results as a Markdown page, from signatures and docstrings of python/medley. Used by reference.py."""

import ast
import re

from documents import ROOT

PACKAGE = ROOT / "python" / "medley"
SECTIONS = [
    ("Plans and shapes", "analysis"), ("Runs", "insight"), ("Measuring", "measure"), ("The job", "job"),
    ("Collectives", "collectives"), ("Messages", "messages"),
]
TORCH = ["replace", "route", "compress", "scopes"]
TORCH_CLASSES = [("torch/_c10d.pyi", "Options"), ("torch/compress.py", "CompressState"), ("torch/_c10d.pyi", "ErrorFeedback")]
#: What the fields and methods of a compiled class mean, where its stub has no room for it.
FIELDS = {
    "ErrorFeedback": {"reset()": "forgets everything", "len()": "the number of elements of its tensor; 0 before the first operation"},
    "Options": {
        "rules": "which backend carries which operation ([routes](routing.md#rules))",
        "backends": "of the default group: its backends, in order of preference; default: `MEDLEY_BACKENDS`, or all that work. Other groups share its context",
        "algorithm": "of all operations of the group, such as \"ring\"",
        "deterministic": "the same bits from run to run",
        "exact": "whether every receive has the size of its message ([what follows](routing.md#messages-of-exact-size))",
    },
}
WIDTH = 110   # of a signature
CLASSES = [("Results of plans and shapes", "results"), ("Results of traces and running jobs", "trace_results"), ("Results of measurements", "measure_results"),
           ("What results share", "_result"), ("Errors", "errors")]


def tree_of(module):
    path = PACKAGE / module
    return ast.parse((path if path.suffix else path.with_suffix(".py")).read_text(encoding="utf-8"))


def doc_of(node):
    """The docstring as Markdown: examples become code blocks."""
    out, block = [], False
    for line in (ast.get_docstring(node) or "").split("\n"):
        starts = line.startswith((">>> ", "... ", "    ")) or (block and line and not out[-1] == "")
        if starts and not block:
            out.append("```python")
            block = True
        elif block and not starts:
            out.append("```")
            block = False
        out.append(line.removeprefix("    ") if block else re.sub("::$", ":", line))
    return out + (["```"] if block else [])


def decorated(node, name):
    return any(ast.unparse(each).endswith(name) for each in node.decorator_list)


def parts_of(text):
    """Its parts between commas that are in no bracket or string."""
    parts, depth, quote = [""], 0, ""
    for mark in text:
        quote = "" if mark == quote else quote or (mark if mark in "\"'" else "")
        depth += 0 if quote else {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(mark, 0)
        if mark == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts]


def signature(called, arguments, returns=""):
    """In lines of at most WIDTH, broken between parameters and indented to the bracket."""
    whole = f"{called}({arguments}){returns}"
    if len(whole) <= WIDTH:
        return [whole]
    indent, lines = " " * (len(called) + 1), [f"{called}("]
    parts = parts_of(arguments)
    for part in [f"{each}," for each in parts[:-1]] + [f"{parts[-1]}){returns}"]:
        fits = len(lines[-1]) + 1 + len(part) <= WIDTH or lines[-1].endswith("(")
        if fits:
            lines[-1] += ("" if lines[-1].endswith("(") else " ") + part
        else:
            lines.append(indent + part)
    return lines


def functions(module, prefix="medley"):
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not decorated(node, "overload"):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns and not decorated(node, "contextmanager") else ""
            called = "with " if decorated(node, "contextmanager") else ""
            yield from ["", f"### `{prefix.removeprefix('medley').lstrip('.')}{'.' if prefix != 'medley' else ''}{node.name}`", "", "```python",
                        *signature(f"{called}{prefix}.{node.name}", ast.unparse(node.args), returns), "```", ""]
            yield from doc_of(node)


def torch_class(module, name):
    """A class with its constructor and its fields."""
    node = next(each for each in tree_of(module).body if isinstance(each, ast.ClassDef) and each.name == name)
    init = next(each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    arguments = ast.unparse(init.args).removeprefix("self").removeprefix(",").strip()
    yield from ["", f"### `torch.{name}`", "", "```python", *signature(f"medley.torch.{name}", arguments), "```", "", *doc_of(node)]
    yield from ["", *[f"- `{field}`: {sentence}" for field, sentence in FIELDS[name].items()]] if name in FIELDS else []


def classes(module):
    for node in tree_of(module).body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        fields = [each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and not each.target.id.isupper()]
        yield f"| `{node.name}` | {(ast.get_docstring(node) or '').split(chr(10))[0]} | {', '.join(f'`{name}`' for name in fields)} |"


def page():
    out = ["# Python: functions and results", "", "<!-- generated by tests/docs/reference.py; do not edit -->", "",
           "`help(medley.plan)` shows the same. The examples run as tests (`tests/python/core/test_docstrings.py`). Results are dataclasses with",
           "`to_dict()` (what the command writes with `--json`), `to_pandas()` and a table in notebooks; their fields are listed at the end.",
           "`medley.torch` is explained in [pytorch.md](pytorch.md)."]
    for title, module in SECTIONS:
        out += ["", f"## {title}", *functions(module)]
    out += ["", "## PyTorch"]
    for module in TORCH:
        out += functions(f"torch/{module}", "medley.torch")
    for module, name in TORCH_CLASSES:
        out += torch_class(module, name)
    for title, module in CLASSES:
        out += ["", f"## {title}", "", "| class | | fields |", "|---|---|---|", *classes(module)]
    return "\n".join(out) + "\n"
