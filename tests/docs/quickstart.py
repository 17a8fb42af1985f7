"""Runs the lines of a quick-start as its reader would, and compares what they print with what the page shows.

    python3 tests/docs/quickstart.py docs/quickstart-design.md [build/release/bin/medley]

Lines that begin with "$ " in blocks marked ```console run in one bash, in a new folder with examples/ in it. Under each stands its
output: numbers may differ, a line "…" stands for any lines, "…" in a line for any text, and a command without output is not compared. Exits 77 with a sentence
when something that the page needs is missing here.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from documents import ROOT, lines_of

NUMBER = re.compile(r"(?<![A-Za-z_])[-+−]?\d[\d.,]*(?:e[-+]\d+)?")
END = "--- end of a line, status "


def commands(page):
    """(line number, command, lines it should print)."""
    found = []
    for number, text, block in lines_of(page):
        if block != "console":
            continue
        if text.startswith("$ "):
            found.append((number, text[2:], []))
        elif found and found[-1][1].endswith("\\"):
            found[-1] = (found[-1][0], found[-1][1][:-1] + text.strip(), [])
        elif found and text.strip():
            found[-1][2].append(text)
    return found


def pattern(line):
    """A line with every number, and every run of blanks and bar characters, left open."""
    out, last = "", 0
    for number in NUMBER.finditer(line):
        out += re.escape(line[last:number.start()]) + r"[-+−]?[\d.,]+(?:e[-+]\d+)?"
        last = number.end()
    out += re.escape(line[last:])
    return re.sub(r"(?:\\ )+", r"\\s+", out).replace("…", ".*")


def difference(expected, printed):
    """The first expected line that is not printed in its place; None: all are."""
    at, skipping = 0, False
    lines = [line.rstrip() for line in printed if line.strip()]
    for line in expected:
        if line.strip() == "…":
            skipping = True
            continue
        wanted = re.compile(r"\s*" + pattern(line.strip()) + r"\s*$")
        while at < len(lines) and not wanted.match(lines[at]):
            if not skipping:
                return line
            at += 1
        if at == len(lines):
            return line
        at, skipping = at + 1, False
    return None


def run(page, medley):
    asked = commands(page)
    script = "\n".join(f"{command}\necho '{END}'$?" for _, command, _ in asked)
    bin = pathlib.Path(medley).resolve().parent
    environment = {**os.environ, "PATH": f"{bin}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "120",
                   "OMP_NUM_THREADS": "1"}
    if (bin.parent / "python").is_dir():
        environment["PYTHONPATH"] = str(bin.parent / "python")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "bench", "tests", "tools", "python"):
            os.symlink(ROOT / name, pathlib.Path(folder) / name)
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    parts = re.split(re.escape(END) + r"(\d+)\n", done.stdout)
    problems = []
    for index, (number, command, expected) in enumerate(asked):
        if 2 * index + 1 >= len(parts):
            problems.append(f"{page.name}:{number}: not reached: {command}")
            break
        printed, status = parts[2 * index].split("\n"), int(parts[2 * index + 1])
        wrong = difference(expected, printed) if expected else None
        allowed = {0, 1} if " lint " in command else {0}   # a check that finds something ends with 1
        if status not in allowed or wrong is not None:
            problems.append(f"{page.name}:{number}: $ {command}\n  ended with {status}" +
                            (f"\n  does not print: {wrong}" if wrong else "") + "\n  it printed:\n    " + "\n    ".join(printed[-60:]))
    if problems:
        problems.append("on stderr:\n" + done.stderr[-4000:])
    return problems


def missing(page, medley):
    if not os.path.exists(medley):
        return f"{medley} is not built"
    if "torchrun" in page.read_text(encoding="utf-8"):
        where = pathlib.Path(medley).resolve().parent.parent / "python"
        tried = subprocess.run([sys.executable, "-c", "import torch, medley.torch"], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": str(where)})
        if tried.returncode != 0:
            return f"medley.torch cannot be imported: {tried.stderr.strip().splitlines()[-1]}"
    return None


def main():
    page, medley = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "build/release/bin/medley")
    reason = missing(page, medley)
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    problems = run(page, medley)
    print("\n".join(problems) if problems else f"{page.name}: {len(commands(page))} lines ran and printed what the page shows")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
