"""Who is measured and how each is started, on one host or on two. Used by bench/messages/compare."""
import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field

import candidates

HOSTS = candidates.ROOT / "tests/hosts/hosts.sh"
# Namespaces do not keep UCX from sharing memory; hosts would.
ONLY_TCP = {"UCX_TLS": "tcp,self"}


@dataclass
class Messenger:
    name: str
    command: list
    rivals: list = field(default_factory=list)  # of a Medley: the libraries it is compared with
    about: dict = field(default_factory=dict)

    def measure(self, _, seconds, batch, timeout):
        """One repetition, as {(op, bytes): median_us}; the programs choose their own batches."""
        output = candidates.output_of(with_seconds(self.command, seconds), timeout)
        try:
            report = json.loads(output)
        except json.JSONDecodeError as error:
            raise candidates.Failure(f"{self.name} printed more than its report ({error}): {output[-300:]}") from error
        self.about["version"] = report["version"]
        return {(row["op"], row["bytes"]): row["median_us"] for row in report["rows"]}


def with_seconds(command, seconds):
    if command[:2] == ["bash", "-c"]:
        return [*command[:2], f"{command[2]} --seconds {seconds}"]
    return [*command, "--seconds", str(seconds)]


def bound(program):
    """Each of two ranks to a core of its own, as on one host: hosts of one machine share its cores."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return program
    script = (f'[ "${{MEDLEY_RANK-$OMPI_COMM_WORLD_RANK}}" = 0 ] && core={cores[0]} || core={cores[1]}; '
              'exec taskset -c "$core" "$@"')
    return ["sh", "-c", script, "sh", *program]


def on_hosts(starter, variables, program):
    """Two ranks on two namespaces by a function of tests/hosts/hosts.sh: run_ranks or mpirun_ranks."""
    words = [f"{name}={value}" for name, value in variables.items()] + ["--", *bound(program)]
    return ["bash", "-c", f". {shlex.quote(str(HOSTS))}; make_hosts 2; {starter} 2 1 {shlex.join(map(str, words))}"]


def left_out(what, why):
    print(f"compare: {what} is left out: {why}", file=sys.stderr)


def nonblocking(mpi):
    """The same MPI by calls that do not block."""
    return f"{mpi} nonblocking"


def bare(options):
    """The libraries themselves, by name."""
    found = {}
    for mpi in candidates.BANNERS:
        program = options.programs / f"messages_mpi_{mpi}"
        if not program.exists():
            left_out(mpi, f"{program} was not built")
        elif options.hosts and mpi == "openmpi" and shutil.which("mpirun.openmpi"):
            found[mpi] = Messenger(mpi, on_hosts("mpirun_ranks", {}, [program]))
        elif not options.hosts and (one := candidates.mpi(mpi, 2, options.out, program)):
            found[mpi] = Messenger(mpi, one.command, about=one.about)
            found[nonblocking(mpi)] = Messenger(nonblocking(mpi), ["env", "MESSAGES_NONBLOCKING=1", *one.command])
        else:
            left_out(mpi, "it runs on one host only here" if options.hosts else "it is not installed")
    program = options.programs / "messages_ucx"
    if not program.exists():
        left_out("ucx", f"{program} was not built")
    elif options.hosts:
        found["ucx"] = Messenger("ucx", on_hosts("run_ranks", ONLY_TCP, [program]))
    else:
        found["ucx"] = Messenger("ucx", [options.programs / "medley", "run", "-n", "2", "--no-prefix", "--", program])
    return found


def medley(options, backend, mpi=None):
    """Medley over a backend; over mpi, that of this MPI."""
    program = [options.programs / "messages_medley", backend]
    if options.hosts:
        return on_hosts("mpirun_ranks", {}, program) if backend == "mpi" else on_hosts("run_ranks", ONLY_TCP, program)
    run = [options.programs / "medley", "run", "-n", "2", "--no-prefix", "--backends", backend]
    launcher = candidates.find_mpi(mpi, compiles=False)[1] if mpi else None
    return run + (["--mpirun", launcher] if mpi else []) + ["--", *program]


def everyone(options):
    """Medley's first, each with the libraries that it is compared with: shm with all, the others with what they run on."""
    libraries = bare(options)
    if options.hosts and os.geteuid() != 0:
        raise candidates.Failure("--hosts makes network namespaces, which needs root")
    found = []
    for backend in options.only.split(","):
        if backend == "mpi":
            found += [Messenger(f"medley/{mpi}", medley(options, "mpi", mpi), [name for name in (mpi, nonblocking(mpi)) if name in libraries])
                      for mpi in candidates.BANNERS if mpi in libraries]
        elif backend == "shm" and options.hosts:
            left_out("medley/shm", "it serves ranks of one host")
        elif backend not in ("shm", "ucx"):
            raise candidates.Failure(f"--only: '{backend}' is not one of shm, mpi, ucx")
        elif backend == "shm" or backend in libraries:
            rivals = [name for name in libraries if name == backend or (backend == "shm" and "MESSAGES_NONBLOCKING=1" not in libraries[name].command)]
            found.append(Messenger(f"medley/{backend}", medley(options, backend), rivals))
    if not any(one.rivals for one in found):
        raise candidates.Failure("nothing to compare Medley with: install Open MPI, MPICH or UCX and build with -DMEDLEY_BENCH=ON")
    used = {name for one in found for name in one.rivals}
    found += [library for name, library in libraries.items() if name in used]
    for one in found:
        one.command = [str(word) for word in one.command]
        one.about["command"] = " ".join(one.command)
    return found
