"""Programs that let torch find its ranks in the environment, as torchrun sets it, run under other launchers too."""

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
    """Sets what torch's env:// looks for from what another launcher has set. The address is this host's unless
    MASTER_ADDR says otherwise, so ranks on several hosts need that exported; nothing that is set is changed."""
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
