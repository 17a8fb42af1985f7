"""The command ``medley`` of the installed package: the program itself, which lies beside the library."""

import os
import pathlib
import sys


def program() -> pathlib.Path:
    """Where the program is."""
    return pathlib.Path(__file__).parent / "bin" / "medley"


def main() -> None:
    """Becomes the program."""
    path = program()
    if not path.exists():
        sys.exit(f"medley: there is no program {path}; in a build tree it is build/release/bin/medley")
    os.execv(path, ["medley", *sys.argv[1:]])
