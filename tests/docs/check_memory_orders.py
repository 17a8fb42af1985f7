"""Rejects weakly ordered accesses that do not say why they are right.

An access with acquire or release says what it pairs with ("pairs with the acquire load in X::y()"); a relaxed one says why nothing
more is needed ("relaxed: only a count for statistics"), or what it pairs with. The comment stands on the access, up to four lines
above it, or at the declaration of its variable (an atomic of the same folder), where it holds for all accesses.

    python3 tests/docs/check_memory_orders.py
"""

import re
import sys

from documents import ROOT

FOLDERS = ["src", "include", "python/src"]
ABOVE = 4   # lines

ORDER = re.compile(r"\bmemory_order(?:_|::)(relaxed|acquire|release|acq_rel|consume)\b")
DECLARATION = re.compile(r"\batomic<.*>\s*[&*]*\s*((?:\w+\s*(?:\{[^}]*\})?\s*,\s*)*\w+)\s*(?:\{[^}]*\}|\[[^\]]*\])?\s*[;=({]")
REASON = {"relaxed": re.compile(r"\brelaxed:|\bpairs with\b", re.IGNORECASE)}
PAIR = re.compile(r"\bpairs with\b", re.IGNORECASE)


def comment_of(line):
    code, mark, text = line.partition("//")
    return text.strip(" /") if mark else ""


def code_of(line):
    return line.partition("//")[0]


def is_comment(line):
    return line.lstrip().startswith("//")


def declarations_of(lines):
    """Names of atomics and the comment at each: its own, or the one above the block of declarations that it is part of."""
    for number, line in enumerate(lines):
        match = DECLARATION.search(code_of(line))
        if not match:
            continue
        text = [comment_of(line)]
        above = number - 1
        while above >= 0 and not is_comment(lines[above]) and DECLARATION.search(code_of(lines[above])):
            above -= 1
        while above >= 0 and is_comment(lines[above]):
            text.append(comment_of(lines[above]))
            above -= 1
        for name in re.findall(r"\w+", re.sub(r"\{[^}]*\}", "", match.group(1))):
            yield name, " ".join(text)


def statement_before(lines, number):
    """The code of the statement that the line ends, as far as it began in the two lines above."""
    code = code_of(lines[number])
    for above in range(number - 1, max(number - 3, -1), -1):
        if re.search(r"[;{}]\s*$", code_of(lines[above])):
            break
        code = code_of(lines[above]) + code
    return code


def problems_of(lines, declared):
    """Line numbers, from 1, and what is missing there. `declared`: comments by the name of a variable."""
    for number, line in enumerate(lines):
        for order in ORDER.findall(code_of(line)):
            reason = REASON.get(order, PAIR)
            near = " ".join(comment_of(text) for text in lines[max(number - ABOVE, 0):number + 1])
            names = re.findall(r"\w+", statement_before(lines, number))
            if reason.search(near) or any(reason.search(comment) for name in names for comment in declared.get(name, [])):
                continue
            yield number + 1, ("a relaxed access does not say why that is enough (\"relaxed: ...\")" if order == "relaxed" else
                               f"an access with {order} does not say what it pairs with (\"pairs with ...\")")


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h", ".cu"):
                yield path


def main():
    texts = {path: path.read_text().splitlines() for path in files()}
    declared = {}   # by folder
    for path, lines in texts.items():
        for name, comment in declarations_of(lines):
            declared.setdefault(path.parent, {}).setdefault(name, []).append(comment)
    accesses = sum(len(ORDER.findall(code_of(line))) for lines in texts.values() for line in lines)
    found = [f"{path.relative_to(ROOT)}:{number}: {what}" for path, lines in texts.items()
             for number, what in problems_of(lines, declared.get(path.parent, {}))]
    print("\n".join(found) or f"all {accesses} weakly ordered accesses say what they pair with")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
