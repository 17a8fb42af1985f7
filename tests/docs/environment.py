"""The environment variables of src/bootstrap/variables.txt. The check fails where the sources read another MEDLEY_ variable, or none
of this name. Used by reference.py."""

import re

from documents import ROOT

LIST = "src/bootstrap/variables.txt"
_NOT_VARIABLES = {"MEDLEY_REPORT_DATA"}   # a mark inside the report page


def groups():
    """{group: {names, separated by ", ": sentence}}"""
    out = {}
    for line in (ROOT / LIST).read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            listed = out[line.removeprefix("== ")] = {}
        elif line and not line.startswith("#"):
            names, _, sentence = line.partition(": ")
            listed[names] = sentence
    return out


def read_by_the_sources():
    """Quoted MEDLEY_ names in the sources."""
    found = set()
    for folder in ("src", "include", "python"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".py"):
                found |= set(re.findall(r'"(MEDLEY_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    return found - _NOT_VARIABLES - {"MEDLEY_"}


def problems():
    """One line for each variable that the list and the sources do not both have."""
    listed = {name for group, entries in groups().items() if not group.startswith("Of ")
              for names in entries for name in names.split(", ") if name.startswith("MEDLEY_")}
    read = read_by_the_sources()
    return [f"{name} is read by the sources and not in {LIST}" for name in sorted(read - listed)] + \
        [f"{name} is in {LIST} and no source reads it" for name in sorted(listed - read)]


def page():
    """The variables as Markdown tables."""
    out = ["A misspelt `MEDLEY_` variable gives one line on stderr, by rank 0 and by the command.", ""]
    for group, listed in groups().items():
        out += [f"### {group}", "", "| variable | |", "|---|---|"]
        out += [f"| {', '.join(f'`{name}`' if name != '…' else name for name in names.split(', '))} | {sentence} |" for names, sentence in listed.items()]
        out.append("")
    return out
