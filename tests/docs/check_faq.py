"""Every error text that docs/faq.md explains is still one of Medley's: check_faq.py exits 1 and names those that are not."""

import re
import sys

from documents import ROOT

SHORTEST = 8   # pieces below are too common to say anything


def sources():
    """All sources as one text, in which string literals that stand side by side are joined as the compiler joins them."""
    text = ""
    for folder, kinds in (("src", (".cpp", ".hpp")), ("include", (".hpp",)), ("python", (".cpp", ".hpp", ".py"))):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in kinds:
                text += path.read_text(encoding="utf-8")
    return re.sub(r'"\s*\n?\s*"', "", text)


def missing(page, code):
    """(heading, piece) of every piece between two … that the code does not have."""
    for heading in re.findall(r"^### `(.+)`$", page, re.MULTILINE):
        for piece in heading.split("…"):
            piece = piece.strip(" ,.:;")
            if len(piece) >= SHORTEST and piece not in code:
                yield heading, piece


def main():
    page = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    gone = list(missing(page, sources()))
    for heading, piece in gone:
        print(f'docs/faq.md: "{heading}": no source has "{piece}"')
    sys.exit(1 if gone else 0)


if __name__ == "__main__":
    main()
