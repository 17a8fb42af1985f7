"""A rank that medley._start started: ``python -m medley._rank FOLDER`` runs the folder's request together with the other ranks."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys

from . import errors
from ._request import analysis
from ._start import make_request


def main(folder: pathlib.Path) -> int:
    """The exit status."""
    asked = json.loads((folder / "request.json").read_text())
    function = asked["function"]
    rank = analysis().place()[0]
    if function == "tune":
        signal.signal(signal.SIGTERM, signal.default_int_handler)   # both interrupts save the table
    else:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    pipe = os.open(folder / "progress", os.O_WRONLY | os.O_NONBLOCK) if rank == 0 else None

    def tell(*now: object) -> None:
        if pipe is not None:
            try:
                os.write(pipe, (json.dumps(now) + "\n").encode())
            except BlockingIOError:
                pass   # nobody reads fast enough
            except BrokenPipeError:   # the process that asked was killed
                signal.raise_signal(signal.SIGINT)

    try:
        answer = getattr(analysis(), function)(make_request(function, asked["options"], asked["ranks"]), tell)
    except errors.Error as error:
        (folder / f"error.{rank:04}").write_text(json.dumps({"class": type(error).__name__, "message": str(error)}))
        return 1
    except KeyboardInterrupt:
        return 130
    if rank == 0:
        (folder / "answer.new").write_text(answer)
        os.replace(folder / "answer.new", folder / "answer.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
