"""Rejects placeholders and dead links, to files and to headings, in every Markdown document.

    python3 tests/docs/check_text.py
"""

import re
import sys

from documents import ROOT, documents, lines_of, where

PLACEHOLDER = re.compile(r"@[A-Z][A-Z0-9_]*@|\b(?:TODO|FIXME|TBD|XXX)\b|\?\?\?|\blorem ipsum\b", re.IGNORECASE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")


def anchor(heading):
    """As GitHub makes them: lower case, words joined by dashes, other marks dropped."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    found = {}
    for _, text, block in lines_of(path):
        if block is None and re.match(r"#{1,6} ", text):
            name = anchor(text.lstrip("#"))
            found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, times in found.items() for n in range(times + 1)}


def problems_of(path):
    for number, text, block in lines_of(path):
        for match in PLACEHOLDER.finditer(text):
            if match.group().startswith("@") and match.group() != match.group().upper():
                continue   # a decorator or an address, not a placeholder
            yield number, f"holds the placeholder {match.group()}"
        if block is not None:
            continue
        for target in LINK.findall(CODE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue   # elsewhere; nothing is fetched
            name, _, heading = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                yield number, f"links to {target}, which does not exist"
            elif heading and file.suffix == ".md" and heading not in anchors(file):
                yield number, f"links to {target}: {file.relative_to(ROOT)} has no such heading"


def main():
    found = [f"{where(path, number)}: {what}" for path in documents() for number, what in problems_of(path)]
    print("\n".join(found) or "no placeholders, no dead links")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
