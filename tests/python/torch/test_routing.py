"""Routes by context manager and by group, and replacing other backends."""

import os
import pathlib

import groups
import pytest
import ranks
import torch
import torch.distributed as dist

import medley
import medley.torch


def routed():
    x = torch.ones(4)
    with medley.torch.route("all_reduce=shm; *=shm"):
        dist.all_reduce(x)
    with medley.torch.route("all_to_all=pigeon"):
        dist.all_reduce(x)   # has no rule for it
        with pytest.raises(RuntimeError, match="pigeon"):
            dist.all_to_all_single(torch.empty(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="pigeon"):   # also for unequal parts
            dist.all_to_all_single(torch.empty(2), torch.ones(2), [1, 1], [1, 1])
        with medley.torch.route("*=shm"):
            dist.all_to_all_single(torch.empty(2), torch.ones(2))
    dist.all_to_all_single(torch.empty(2), torch.ones(2))
    group = dist.new_group(pg_options=medley.torch.Options(rules="all_reduce=shm", deterministic=True))
    dist.all_reduce(x, group=group)
    for bad in ("all_to_all", "fly=shm", "all_reduce=", "all_reduce:0-4K=shm"):
        with pytest.raises(medley.Invalid):
            with medley.torch.route(bad):
                pass
    with pytest.raises(medley.Invalid):
        medley.torch.Options(rules="fly=shm")


def test_routes():
    groups.run(2, routed)


def over_a_tuned_table():
    x = torch.ones(4)
    dist.all_reduce(x)   # by the table
    assert x[0] == 2
    with pytest.raises(RuntimeError, match="never chooses it|not available"):
        with medley.torch.route("*=shm"):
            dist.all_reduce(x)


def test_libraries_that_the_table_of_a_step_never_chooses_stay_closed():
    if not any(backend.name == "ucx" and backend.available for backend in medley.info().backends):
        pytest.skip("ucx, the library of the table, is not here")
    table = pathlib.Path(__file__).resolve().parents[2] / "formats" / "routes-2.json"
    groups.run(2, over_a_tuned_table, environment={"MEDLEY_TABLE": str(table), "MEDLEY_CUDA": "0"})


def hard_wired():
    """A program that hard-wires gloo."""
    medley.torch.replace("gloo")
    dist.init_process_group("gloo")
    assert dist.get_backend() == "gloo"
    made = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert isinstance(made, medley.torch.ProcessGroupMedley)
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x[0] == dist.get_world_size()
    dist.monitored_barrier()
    group = dist.new_group(backend="gloo")
    dist.all_reduce(x, group=group)
    dist.destroy_process_group()
    medley.torch.replace()
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)   # the old store may still be there
    dist.init_process_group("gloo")
    made = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert not isinstance(made, medley.torch.ProcessGroupMedley)
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="pigeon"):
        medley.torch.replace("pigeon")


def test_replace():
    ranks.run(2, hard_wired)


def beside_gloo(path):
    dist.init_process_group("gloo")
    group = dist.new_group([0, 1], backend="medley")   # its own context
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    assert x[0] == 2
    dist.destroy_process_group()
    store = dist.FileStore(path, 2)
    for _ in range(2):   # repeatedly over one store, which still holds the old keys
        dist.init_process_group("medley", store=store, rank=int(os.environ["RANK"]), world_size=2)
        dist.all_reduce(x)
        dist.destroy_process_group()


def test_beside_gloo_and_again(tmp_path):
    ranks.run(2, beside_gloo, str(tmp_path / "store"))


def test_other_launchers_are_understood():
    environment = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                   "OMPI_MCA_ess_base_jobid": "77"}
    medley.torch.fill_in_environment(environment)
    assert (environment["RANK"], environment["WORLD_SIZE"], environment["MASTER_ADDR"]) == ("1", "4", "127.0.0.1")
    torchrun = {"RANK": "0", "WORLD_SIZE": "2", "PMI_RANK": "5", "PMI_SIZE": "6"}
    medley.torch.fill_in_environment(torchrun)
    assert torchrun["RANK"] == "0" and "MASTER_PORT" not in torchrun
