"""Sample output in documents, produced by the commands themselves.

    python3 tests/docs/outputs.py build/release/bin/medley            # ends with 1 when a block is not current
    python3 tests/docs/outputs.py build/release/bin/medley --write    # brings all blocks up to date

A block is produced where a comment stands above its fence:

    <!-- output: medley shape --model gpt2-xl --gpu h200-sxm | head -n 20 -->

What follows the bar shortens the output and is not shown. Only commands whose output is the same everywhere belong here.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys

from documents import documents, where

MARK = re.compile(r"^<!-- output: (.+) -->\n```\w*\n((?:(?!```).*\n)*?)```$", re.MULTILINE)


def produced(command, medley):
    folder = pathlib.Path(medley).resolve().parent
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "COLUMNS": "120"})
    if done.returncode not in (0, 1, 141):   # 1: what was checked does not hold; 141: head had enough
        raise SystemExit(f"outputs: '{command}' ended with {done.returncode}: {done.stderr.strip()}")
    text = "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").split("\n"))
    return f"$ {command.split(' | ')[0]}\n{text}\n"


def main():
    medley, write = sys.argv[1], "--write" in sys.argv[2:]
    blocks, stale = 0, 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = text
        for match in MARK.finditer(text):
            blocks += 1
            now = produced(match.group(1), medley)
            if now == match.group(2):
                continue
            stale += 1
            line = text.count("\n", 0, match.start()) + 1
            print(f"{where(path, line)}: {'brought up to date' if write else 'is not current'}: {match.group(1)}")
            if write:
                new = new.replace(match.group(0), match.group(0).replace(match.group(2), now) if match.group(2) else
                                  match.group(0)[:-3] + now + "```")
            else:
                print("".join(difflib.unified_diff(match.group(2).splitlines(True), now.splitlines(True), "document", "command", n=0)))
        if new != text:
            path.write_text(new, encoding="utf-8")
    print(f"{blocks} blocks of output, {stale} {'brought up to date' if write else 'not current'}")
    return 0 if blocks and (write or not stale) else 1


if __name__ == "__main__":
    sys.exit(main())
