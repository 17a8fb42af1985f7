"""The candidates and how each is started: Medley and the MPIs found on this machine.

Used by bench/mpi/compare. Every candidate prints the JSON of `medley bench`.
"""
import json
import math
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMPILE = ["-std=c++20", "-O2", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
# What a launcher prints about itself.
BANNERS = {"openmpi": r"Open ?MPI|OpenRTE|PRRTE", "mpich": r"HYDRA"}


class Failure(Exception):
    """A program that could not be built or run; the text is for the user."""


@dataclass
class Candidate:
    name: str
    command: list  # --op and the like are appended to it
    about: dict = field(default_factory=dict)
    shares_time: bool = False  # whether its --seconds covers all rows together

    def measure(self, op, sizes, seconds, batch, timeout):
        """Rows of one repetition, as {(op, bytes): median_us}."""
        if self.shares_time:
            seconds *= max(1, math.ceil(math.log(max(sizes[1] / max(sizes[0], 4), 1), 4)) + 1)
        command = self.command + ["--op", op, "--sizes", f"{sizes[0]}:{sizes[1]}", "--seconds", str(seconds)]
        command += ["--json", "-"]
        if batch != "1":
            command += ["--batch", batch]
        report = json.loads(output_of(command, timeout))
        rows = [row for row in report["rows"] if row["backend"] in (self.name, self.about.get("backend"))]
        return {(row["op"], row["bytes"]): row["median_us"] for row in rows}


def output_of(command, timeout=120):
    try:
        # A session of its own would survive a Ctrl-C; the launcher ends its ranks when it is terminated.
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{' '.join(command)}: still running after {timeout:.0f} s") from error
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise Failure(f"{' '.join(command)}: exit {done.returncode}: {' / '.join(words[-3:])}")
    return done.stdout


def compile_with(compiler, source, program):
    """Builds `program` unless it is newer than every file it could depend on."""
    sources = [*HERE.glob("*.?pp"), *(ROOT / "src/tune").glob("*.hpp"), *(ROOT / "include/medley").glob("types.hpp")]
    if program.exists() and all(program.stat().st_mtime > file.stat().st_mtime for file in sources):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    output_of([compiler, *COMPILE, str(HERE / source), "-o", str(program)], timeout=300)
    return program


def find_mpi(name, compiles=True):
    """(compiler, launcher) of an MPI by Debian's suffixed names, or by the plain names where they are this MPI."""
    for compiler, launcher in ((f"mpicxx.{name}", f"mpiexec.{name}"), ("mpicxx", "mpiexec")):
        if (compiles and not shutil.which(compiler)) or not shutil.which(launcher):
            continue
        banner = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
        if re.search(BANNERS[name], banner):
            return compiler, launcher
    return None


def binding_choices(name, ranks, cores):
    """Launcher options, the fairest first: a core per rank if there are enough, otherwise no binding."""
    if name == "openmpi":
        base = ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        if not (shutil.which("ssh") or shutil.which("rsh")):
            base += ["--mca", "plm", "isolated"]  # Open MPI 4 refuses to start even local ranks without either
        bound = [["--bind-to", "core"], ["--bind-to", "hwthread"]]
        return [base + choice for choice in (bound if ranks <= cores else []) + [["--bind-to", "none"]]]
    bound = [["-bind-to", "core"], ["-bind-to", "hwthread"]]
    return (bound if ranks <= cores else []) + [["-bind-to", "none"]]


def transports(name, command):
    """The transports, as the library itself reports in verbose mode; for the record only."""
    tiny = ["--op", "barrier", "--sizes", "4", "--seconds", "0.001"]
    loud = command
    if name == "openmpi":
        loud = command[:1] + ["--mca", "pml_base_verbose", "10", "--mca", "btl_base_verbose", "10"] + command[1:]
        pattern = r"component (\w+) selected|init of component (\w+) returned success"
    else:
        pattern = r"tag\(([^)]*)\)"
    done = subprocess.run(loud + tiny, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "UCX_LOG_LEVEL": "info"})
    found = {word for match in re.findall(pattern, done.stdout + done.stderr)
             for word in ([match] if isinstance(match, str) else match) if word}
    return ", ".join(sorted(found)) or "not told"


def mpi(name, ranks, folder, program=None):
    """The MPI `name`, built and ready, or None where it is not installed. `program`: already built, instead of mpi_bench."""
    found = find_mpi(name, compiles=not program)
    if not found:
        return None
    compiler, launcher = found
    program = program or compile_with(compiler, "mpi_bench.cpp", folder / f"mpi_bench_{name}")
    cores = len(os.sched_getaffinity(0))
    refusal = None
    for binding in binding_choices(name, ranks, cores):
        command = [launcher, *binding, "-n", str(ranks), str(program)]
        try:
            trial = output_of(command + ["--op", "barrier", "--sizes", "4", "--seconds", "0.001"])
        except Failure as error:
            refusal = error
            continue
        about = {"version": json.loads(trial)["version"], "command": " ".join(command[:-1]),
                 "transports": transports(name, command)}
        return Candidate(name, command, about=about)
    raise refusal


def medley(program, ranks, backend, algorithm=""):
    if not shutil.which(program):
        raise Failure(f"--medley: {program} is not there; ./run builds it")
    command = [str(program), "bench", "-n", str(ranks), "--backends", backend]
    command += ["--algorithms", algorithm] if algorithm else []
    version = output_of([str(program), "--version"]).strip()
    about = {"backend": backend, "version": version, "command": " ".join(command)}
    return Candidate("medley", command, about=about, shares_time=True)
