"""The command ``medley`` of the installed package: runs the program that is installed next to the library."""

import os
import pathlib
import sys


def program() -> pathlib.Path:
    """The path of the program."""
    return pathlib.Path(__file__).parent / "bin" / "medley"


def main() -> None:
    """Replaces this process with the program."""
    path = program()
    if not path.exists():
        sys.exit(f"medley: there is no program {path}; in a build tree it is build/release/bin/medley")
    os.execv(path, ["medley", *sys.argv[1:]])
