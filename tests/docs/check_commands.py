"""Holds every command that a document shows against the tree: `medley …` lines must parse, scripts must exist.

    python3 tests/docs/check_commands.py build/release/bin/medley

Commands are the lines of code blocks that begin with "$ ", "medley", "./" or another word below, and, in README.md, code
spans that begin with "medley " and have options. medley plan and medley shape are quick and run for real, in a folder of their own; the other
commands parse their arguments (MEDLEY_PARSE_ONLY) and run nothing.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

from documents import ROOT, documents, lines_of, where

SCRATCH = tempfile.TemporaryDirectory()   # what commands write goes with it
LANGUAGES = {"", "sh", "bash", "console", "shell"}
STARTS = ("medley ", "./", "build/release/bin/", "bench/", "tests/", "cmake ", "ctest ")
ASSIGNMENT = re.compile(r"^[A-Z][A-Z0-9_]*=")
# Files of the reader, which are not here; a model or a GPU that is not known has no such ending.
ABSENT = re.compile(r"[\w-]+\.(?:json|csv|yml|toml|txt)\b.*(?:no such file|nor a file)")
SPAN = re.compile(r"`([^`]+)`")


def commands_of(path):
    """(line, words) of every command; a line that ends in a backslash goes on in the next."""
    pending, begun = "", 0
    for number, text, block in lines_of(path):
        if block is None:
            if path.name == "README.md":
                for span in SPAN.findall(text):
                    if re.match(r"medley \w+ .*-", span) and not re.search(r"[…|\[\]]", span):
                        yield number, shlex.split(span)
            pending = ""
            continue
        line = text.strip()
        if block not in LANGUAGES:
            continue
        if not pending:
            prompt = line.startswith("$ ")
            line = line[2:] if prompt else line
            if not prompt and not line.startswith(STARTS) and not ASSIGNMENT.match(line):
                continue
            begun = number
        pending += line.rstrip("\\")
        if line.endswith("\\"):
            continue
        whole, pending = pending, ""
        for part in re.split(r"&&|\|\||;", whole.split(" #")[0].split(" | ")[0]):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                continue
            while words and (ASSIGNMENT.match(words[0]) or words[0] == "sudo"):
                words = words[1:]
            if words:
                yield begun, words


def redirected(words):
    """The words before a redirection."""
    for i, word in enumerate(words):
        if re.match(r"^\d?[<>]", word):
            return words[:i]
    return words


def problem_of(words, medley):
    words = redirected(words)
    program = words[0]
    if program.rsplit("/", 1)[-1] == "medley":
        done = subprocess.run([medley, *words[1:]], capture_output=True, text=True, timeout=60, cwd=SCRATCH.name,
                              env={**os.environ, "MEDLEY_PARSE_ONLY": "1"})
        error = done.stderr.strip()
        if done.returncode == 0 or ABSENT.search(error):
            return None
        return f"'{shlex.join(words)}' does not parse: {error}"
    if program in ("python", "python3") and len(words) > 1 and "/" in words[1]:
        program = words[1]
    own = program.startswith(("./", "bench/", "tests/", "examples/"))
    if own and program not in ("./train", "./program") and not (ROOT / program).exists():
        return f"'{shlex.join(words)}': there is no {program}"
    if program in ("cmake", "ctest") and "--preset" in words:
        preset = words[words.index("--preset") + 1]
        if f'"{preset}"' not in (ROOT / "CMakePresets.json").read_text():
            return f"'{shlex.join(words)}': there is no preset {preset}"
    return None


def main():
    medley = os.path.abspath(sys.argv[1])
    checked, found = 0, []
    for path in documents():
        for number, words in commands_of(path):
            checked += 1
            problem = problem_of(words, medley)
            if problem:
                found.append(f"{where(path, number)}: {problem}")
    print("\n".join(found) or f"{checked} commands in documents, all known")
    return 1 if found or checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
