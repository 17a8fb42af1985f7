"""Checks what ./run printed and wrote on a bare machine.

    python3 tests/bare/check_run.py LOG OUT      # its output, and a copy of its out/
"""

import json
import pathlib
import re
import sys

BACKENDS = {"shm", "mpi", "gloo", "ucx"}
FIRST_RESULT, END = 5 * 60, 10 * 60   # seconds on two idle cores; other machines get twice that
SPARE = 2


def seconds(clock):
    minutes, rest = clock.split(":")
    return 60 * int(minutes) + int(rest)


def libraries(table):
    """The libraries of the fastest route of every cell; a hierarchical route, such as shm+mpi, counts as both."""
    found = set()
    for cell in table["cells"]:
        if cell["routes"]:
            best = min(cell["routes"], key=lambda route: route["median_us"])
            found |= set(re.split(r"[^a-z]+", best["backend"])) & BACKENDS
    return found


def problems(log, out):
    data = out / "run"
    available = {backend["name"] for backend in json.loads((data / "info.json").read_text())["backends"] if backend["available"]}
    if not BACKENDS <= available:
        yield f"medley info lacks {', '.join(sorted(BACKENDS - available))}"
    measured = {row["backend"] for row in json.loads((data / "first.json").read_text())["rows"]}
    if not BACKENDS <= measured:
        yield f"the first comparison lacks {', '.join(sorted(BACKENDS - measured))}"
    tables = [path for path in (data / "routes.json", data / "hosts" / "hosts.routes.json") if path.exists()]
    if len(tables) < 2:
        yield "a route table is missing: of this host, or of two hosts"
    mixed = set().union(*(libraries(json.loads(path.read_text())) for path in tables))
    if len(mixed) < 2:
        yield f"all routes go over {', '.join(mixed) or 'nothing'}: nothing is mixed"
    page = (out / "report.html").read_text()
    report = json.loads(re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL).group(1))["runs"][0]
    for part in ("info", "bench", "steps", "routes", "traces", "plans", "reconcile", "replays", "shapes", "gemms", "lints", "searches"):
        if not report[part]:
            yield f"the report has no {part}"
    yield from (f"a command failed: {command}" for command in report["failed"])
    yield from (f"{file['file']} was refused: {file['why']}" for file in report["files"] if file["status"] == "refused")
    for line in (data / "skipped.txt").read_text().split("\n"):
        if line:
            yield f"on a bare root nothing may be skipped: {line}"
    phases = dict(re.findall(r"^-- ([^:\n]+): [\d:]+ \((\d+:\d\d) since the start\)$", log, re.MULTILINE))
    for phase, limit in (("first results", FIRST_RESULT), ("plans, and steps replayed from them", END)):
        if phase not in phases:
            yield f"the phase '{phase}' did not print its time"
        elif seconds(phases[phase]) > SPARE * limit:
            yield f"the phase '{phase}' ended after {phases[phase]}; it has {limit // 60} minutes on two quiet cores"
        elif seconds(phases[phase]) > limit:
            print(f"check_run: warning: the phase '{phase}' ended after {phases[phase]}, beyond {limit // 60}:00")


def main():
    found = list(problems(pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])))
    print("\n".join(f"check_run: {problem}" for problem in found) or "check_run: ./run shows what it should")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
