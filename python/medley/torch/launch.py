"""Lets programs that use torch's env:// rendezvous, as torchrun sets it up, run under other launchers."""

from __future__ import annotations

import os
import zlib
from typing import MutableMapping

#: rank, size, rank on this host, and what names the job: of `medley run`, Open MPI, MPICH and Slurm.
_LAUNCHERS = (
    ("MEDLEY_RANK", "MEDLEY_WORLD_SIZE", "MEDLEY_LOCAL_RANK", "MEDLEY_STORE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_MCA_ess_base_jobid"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "HYDI_CONTROL_FD"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID"),
)


def fill_in_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets the variables of torch's env:// from those of another launcher. The address is this host's unless
    MASTER_ADDR is set, so ranks on several hosts must export it; existing variables are not changed."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        return
    for rank, size, local, job in _LAUNCHERS:
        if rank not in environment or size not in environment:
            continue
        environment["RANK"] = environment[rank]
        environment["WORLD_SIZE"] = environment[size]
        environment.setdefault("LOCAL_RANK", environment.get(local, environment[rank]))
        hosts_apart = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE", environment[size]) != environment[size]
        if not hosts_apart:
            environment.setdefault("MASTER_ADDR", "127.0.0.1")
        # The same on all ranks of a job, different for two jobs on one host.
        name = environment.get(job) or str(os.getppid())
        environment.setdefault("MASTER_PORT", str(20000 + zlib.crc32(name.encode()) % 20000))
        return
