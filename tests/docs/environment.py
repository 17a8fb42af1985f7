"""Every environment variable that Medley reads, with a sentence on it. The check fails where the sources read another MEDLEY_
variable, or none of this name. Used by reference.py."""

import re

from documents import ROOT

#: group: {name: sentence}. Names that are not MEDLEY_… belong to others and are read, too.
VARIABLES = {
    "Who a rank is ([launching](launching.md))": {
        "MEDLEY_RANK": "This process's rank. `medley run` sets it.",
        "MEDLEY_WORLD_SIZE": "How many ranks there are.",
        "MEDLEY_LOCAL_RANK": "Its rank among those of its host.",
        "MEDLEY_STORE": "`host:port` of the store where ranks meet, or `@NAME` for a local socket. Overrides what a launcher says.",
        "MEDLEY_STORE_SERVED": "`1`: the launcher serves the store; rank 0 does otherwise. Set by `medley run`.",
        "MEDLEY_TOKEN": "The secret that admits a rank to its job. Must be the same on all ranks; needed on several hosts.",
        "MEDLEY_CORES": "Cores that the job's helper threads may use. Set by `medley run`.",
        "MEDLEY_MPIRUN": "The mpirun that starts ranks when mpi is among the backends, such as `mpirun.mpich`.",
    },
    "What carries operations ([routes](routing.md), [tuning](tuning.md), [backends](backends.md))": {
        "MEDLEY_BACKENDS": "Backends of contexts that name none, in order of preference: `shm,ucx`. `auto`: those that the table and the rules can choose.",
        "MEDLEY_BACKEND_PATH": "Folders with backend plugins, searched first; separated by colons.",
        "MEDLEY_RULES": "Rules that choose backends by operation and size: `all_reduce:0-4K=shm; *=mpi`.",
        "MEDLEY_TABLE": "A route table that `medley tune` wrote. Empty: none, not even the cached one.",
        "MEDLEY_ONLINE": "`1` on any rank: routes are measured again in the running job and changed where another is clearly faster. `shuffle`: they change every third operation, for tests.",
        "MEDLEY_SHM_DIRECT": "`1` forces direct reads between processes for large data over shm, `0` forbids them.",
        "MEDLEY_GLOO_INTERFACE": "An interface or local address that gloo listens on.",
        "MEDLEY_MPI": "Which MPI the mpi backend opens where both are installed: `openmpi` or `mpich`.",
        "MEDLEY_MPI_CHUNK": "Largest number of elements of one MPI call; larger operations are split. For tests.",
        "MEDLEY_MPI_THREADS": "`multiple`: request MPI_THREAD_MULTIPLE, for programs that call MPI from several threads. Default: `serialized`.",
        "MEDLEY_CUDA": "`0`: CUDA is not used. `1`: skip the check for the driver's control file, `/dev/nvidiactl`.",
        "MEDLEY_CUBLASLT": "The libcublasLt that `medley shape bench` opens.",
    },
    "Failures and checks ([guarantees](guarantees.md))": {
        "MEDLEY_CHECK": "`1` on any rank: the consistency checker reports the first collective in which ranks differ.",
        "MEDLEY_LOST_AFTER": "Seconds without an answer after which a host's ranks count as lost (5).",
        "MEDLEY_SUSPECT_AFTER": "Seconds after which one line on stderr says that a host does not answer (0.7).",
        "MEDLEY_POISON": "`1`: memory that Medley reuses is overwritten first, so that a use after free shows. For tests.",
    },
    "Recording ([traces](trace.md))": {
        "MEDLEY_TRACE": "Keep all operations in this folder.",
        "MEDLEY_FLIGHT": "The folder of the ring of last operations, which is always on; `off`: in memory only.",
        "MEDLEY_RECORD": "`off`: no recording at all; only to measure what it costs.",
    },
    "The command": {
        "NO_COLOR": "Any value: no colours ([no-color.org](https://no-color.org)).",
        "MEDLEY_PARSE_ONLY": "Commands check their options and do nothing. For tests.",
        "MEDLEY_REPLAY_FOLDER": "How `medley replay` tells the ranks it starts where to record.",
        "MEDLEY_SOAK_REPORT": "How `medley soak` hears from the ranks it starts.",
    },
    "Of others": {
        "RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT": "torchrun's: who a rank is.",
        "OMPI_COMM_WORLD_*, PMIX_*": "Open MPI's.",
        "PMI_*, MPI_LOCALNRANKS": "MPICH's and Slurm's PMI.",
        "SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST, …": "Slurm's, inside a job step.",
        "GLOO_SOCKET_IFNAME": "Read where MEDLEY_GLOO_INTERFACE is not set.",
        "UCX_*, NCCL_*, OMPI_MCA_*": "The libraries' own settings apply unchanged.",
        "TORCH_NCCL_BLOCKING_WAIT": "`1`: `work.wait()` of the PyTorch backend blocks the host.",
        "XDG_CACHE_HOME, HOME": "Where the cached route table is: `medley/routes.json`.",
        "TMPDIR": "Where commands make temporary files.",
    },
}

_NOT_VARIABLES = {"MEDLEY_REPORT_DATA"}   # a mark inside the report page


def names():
    return {name for group in VARIABLES.values() for listed in group for name in listed.split(", ")}


def read_by_the_sources():
    """Quoted MEDLEY_ names in the sources."""
    found = set()
    for folder in ("src", "include", "python"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".py"):
                found |= set(re.findall(r'"(MEDLEY_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    return found - _NOT_VARIABLES


def problems():
    """One line for each variable that the list and the sources do not both have."""
    listed, read = {name for name in names() if name.startswith("MEDLEY_")}, read_by_the_sources()
    return [f"{name} is read by the sources and not in tests/docs/environment.py" for name in sorted(read - listed)] + \
        [f"{name} is in tests/docs/environment.py and no source reads it" for name in sorted(listed - read)]


def page():
    """The variables as Markdown tables."""
    out = []
    for group, listed in VARIABLES.items():
        out += [f"### {group}", "", "| variable | |", "|---|---|"]
        out += [f"| {', '.join(f'`{name}`' if name != '…' else name for name in entry.split(', '))} | {sentence} |" for entry, sentence in listed.items()]
        out.append("")
    return out
