"""Runs a measuring function on ranks: those that this process belongs to, or new ones on this host.

New ranks are ``medley run -n N -- python -m medley._rank FOLDER``. The folder holds the request; rank 0 writes its answer there, a
failing rank its error, and progress comes through a named pipe."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
from typing import Any, Callable, Iterator

from . import errors
from ._command import program
from ._request import analysis

Progress = Callable[[float, float, str], object]

_END_WITHIN = 20.0   # seconds between an interrupt and the end of the ranks; the launcher's own grace is 5


def run_on_ranks(function: str, n: int | None, options: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
    """What the function of this name in medley._analysis answers. Errors in the request are raised before any rank starts."""
    place = analysis().place()
    if place and n not in (None, place[1]):
        raise errors.Invalid(f"n={n} does not fit the {place[1]} ranks that {place[2]} started; leave n out")
    if n is not None and n < 1:
        raise errors.Invalid(f"n={n} is not a number of ranks")
    ranks = place[1] if place else n or 0
    request = make_request(function, options, ranks)
    if place or ranks <= 1:
        return _object(getattr(analysis(), function)(request, progress))
    with _job_folder() as folder:
        (folder / "request.json").write_text(json.dumps({"function": function, "options": options, "ranks": ranks}))
        words = ["run", "-n", str(ranks), "--no-prefix", "--bind", "none"]
        backends = [name for name in options["backends"] if name != "auto"]
        words += ["--backends", ",".join(backends)] if backends else []
        status = _watched([*words, "--", sys.executable, "-m", "medley._rank", str(folder)], folder, progress)
        return _answer(folder, status)


def make_request(function: str, options: dict[str, Any], ranks: int) -> Any:
    """The request of medley._analysis for these options; checks them."""
    more = {"ranks": ranks} if function in ("replay", "tune") else {}
    return getattr(analysis(), f"{function}_request")(**options, **more)


def run_command(words: list[str], progress: Progress | None) -> dict[str, Any]:
    """What the command writes with --json. Its status 1 is an answer, too."""
    with _job_folder() as folder:
        status = _watched([*words, "--json", str(folder / "answer.json"), "--progress-to", str(folder / "progress")], folder, progress)
        if status == 2:
            raise errors.Invalid(_log(folder).removeprefix("medley: "))
        return _answer(folder, status)


@contextlib.contextmanager
def _job_folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="medley-job-") as name:
        folder = pathlib.Path(name)
        os.mkfifo(folder / "progress", 0o600)
        yield folder


def _watched(words: list[str], folder: pathlib.Path, progress: Progress | None) -> int:
    """Runs the command to its end and passes progress on. An exception, such as KeyboardInterrupt, ends the command first."""
    pipe = os.open(folder / "progress", os.O_RDWR | os.O_NONBLOCK)   # also for writing: it never reports an end
    with open(folder / "log", "wb") as log:
        # In a session of its own: Ctrl-C in a terminal interrupts this process alone, which passes it on once; a second one would
        # kill ranks that are saving. If this process is killed, nobody reads the pipe, which the ranks take as an interrupt.
        child = subprocess.Popen([program(), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(),
                                 start_new_session=True)
    try:
        pending = b""
        while child.poll() is None:
            if select.select([pipe], [], [], 0.1)[0]:
                *lines, pending = (pending + os.read(pipe, 65536)).split(b"\n")
                for line in lines:
                    if progress:
                        progress(*json.loads(line))
        return child.returncode
    except BaseException:
        _end(child)
        raise
    finally:
        os.close(pipe)


def _environment() -> dict[str, str]:
    """Ranks import the same medley as this process."""
    folder = str(pathlib.Path(__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))}


def _end(child: subprocess.Popen[bytes]) -> None:
    """An interrupt lets the ranks save what they have; a second one kills them, and the launcher's supervisor what is left."""
    for number, seconds in ((signal.SIGINT, _END_WITHIN), (signal.SIGTERM, 5), (signal.SIGKILL, None)):
        child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
            return


def _answer(folder: pathlib.Path, status: int) -> dict[str, Any]:
    answer = folder / "answer.json"
    if answer.exists():
        return _object(answer.read_text())
    raised = [json.loads(file.read_text()) for file in sorted(folder.glob("error.*"))]
    # One rank's error makes others lose it: the cause is the error that is not a consequence.
    raised.sort(key=lambda error: error["class"] in ("RankLost", "Aborted"))
    if raised:
        raise getattr(errors, raised[0]["class"], errors.Error)(raised[0]["message"])
    raise errors.System(f"the ranks ended with status {status} and without an answer; they said:\n{_log(folder)}")


def _object(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text)
    return values


def _log(folder: pathlib.Path) -> str:
    text = (folder / "log").read_text(errors="replace").strip()
    return text if len(text) < 4000 else "…" + text[-4000:]
