"""The command ``medley`` of the installed package: runs the program that is installed next to the library."""

import os
import pathlib
import sys


def program() -> pathlib.Path:
    """The path of the program: in an installed package, or in the build tree whose package this is."""
    folder = pathlib.Path(os.path.abspath(__file__)).parent   # not resolved: in a build tree these files are links to the sources
    installed = folder / "bin" / "medley"
    built = folder.parent.parent / "bin" / "medley"
    return built if built.exists() and not installed.exists() else installed


def main() -> None:
    """Replaces this process with the program."""
    path = program()
    if not path.exists():
        sys.exit(f"medley: there is no program {path}; in a build tree it is build/release/bin/medley")
    os.execv(path, ["medley", *sys.argv[1:]])
