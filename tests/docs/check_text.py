"""Rejects placeholders, dead links, to files and to headings, and code that is not what its file has, in every Markdown document.

Code under a comment <!-- code: FILE --> is copied from that file. A line "// …" stands where something is left out.

    python3 tests/docs/check_text.py
"""

import re
import sys

from documents import ROOT, documents, lines_of, where

PLACEHOLDER = re.compile(r"@[A-Z][A-Z0-9_]*@|\b(?:TODO|FIXME|TBD|XXX)\b|\?\?\?|\blorem ipsum\b", re.IGNORECASE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
COPIED = re.compile(r"^<!-- code: (.+) -->\n```\w*\n((?:(?!```).*\n)*)```$", re.MULTILINE)


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


def problems_of_copies(path):
    text = path.read_text(encoding="utf-8")
    for match in COPIED.finditer(text):
        file = ROOT / match.group(1)
        source = file.read_text(encoding="utf-8") if file.exists() else ""
        for part in re.split(r"^// …\n", match.group(2), flags=re.MULTILINE):
            if part.strip("\n") not in source:
                first = part.strip("\n").split("\n")[0]
                yield text.count("\n", 0, match.start()) + 1, f"shows code that {match.group(1)} does not have, from: {first}"


def main():
    found = [f"{where(path, number)}: {what}" for path in documents()
             for number, what in [*problems_of(path), *problems_of_copies(path)]]
    print("\n".join(found) or "no placeholders, no dead links, no stale code")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
