"""What the checks of documents share: the files, their lines, their code blocks."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(\s*)(```+|~~~+)\s*(\w*)")


def documents():
    """Every Markdown file that git knows or would add."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / name for name in sorted(set(listed.stdout.split("\n"))) if name and (ROOT / name).exists()]
    return [path for path in sorted(ROOT.rglob("*.md"))      # an unpacked archive
            if not {"build", ".venv", "out", ".cache"} & set(path.relative_to(ROOT).parts)]


def lines_of(path):
    """(number, text, language of the code block it is in, or None) of every line; fences themselves belong to no block."""
    fence, language = None, None
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        mark = FENCE.match(text)
        if mark and fence is None:
            fence, language = mark.group(2), mark.group(3)
            yield number, "", None
        elif fence is not None and text.strip() == fence:
            fence = None
            yield number, "", None
        else:
            yield number, text, language if fence is not None else None


def where(path, number):
    return f"{path.relative_to(ROOT)}:{number}"
