"""Groups of groups, split and merged ones, and features that torch.distributed reserves for backends that it knows by name."""

import copy
import datetime
import os

import groups
import pytest
import ranks
import torch
import torch.distributed as dist

import medley
import medley.torch


def sum_over(group):
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total, group=group)
    return total.item()


def subgroups_of_subgroups():
    """Ranks 0 and 2 each make a group of one, ranks {0, 1} and {2, 3} one of two, under the same names."""
    pairs, _ = dist.new_subgroups(group_size=2)
    alone, _ = dist.new_subgroups(group_size=1, group=pairs)
    again, _ = dist.new_subgroups(group_size=2, group=pairs)
    return sum_over(pairs), sum_over(alone), sum_over(again)


def test_subgroups_of_subgroups():
    assert groups.run(4, subgroups_of_subgroups) == [(1.0, 0.0, 1.0), (1.0, 1.0, 1.0), (5.0, 2.0, 5.0), (5.0, 3.0, 5.0)]


def subgroups_beside_gloo():
    dist.init_process_group("gloo")
    pairs, _ = dist.new_subgroups(group_size=2, backend="gloo")
    again, _ = dist.new_subgroups(group_size=2, group=pairs, backend="medley")   # each has its own context
    total = sum_over(again)
    dist.barrier()
    dist.destroy_process_group()
    return total


def test_subgroups_of_subgroups_beside_gloo():
    assert ranks.run_over("gloo", 4, subgroups_beside_gloo) == [1.0, 1.0, 5.0, 5.0]


def made_again():
    """Groups made by their members alone are named after their ranks."""
    totals = []
    for _ in range(3):
        group = dist.new_group([0, 1], use_local_synchronization=True)
        totals.append(sum_over(group))
        dist.destroy_process_group(group)
    return totals


def test_a_group_is_made_again_after_it_was_destroyed():
    assert groups.run(2, made_again) == [[1.0] * 3] * 2


def split():
    world = dist.distributed_c10d._get_default_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    backend = world._get_backend(torch.device("cpu"))
    assert backend.supports_splitting
    before = backend.options._timeout
    for _ in range(2):
        mine = [r for r in range(size) if r % 2 == rank % 2]
        half = world.split_group(mine, timeout=datetime.timedelta(seconds=20))
        assert (half.rank(), half.size()) == (mine.index(rank), len(mine))
        total = torch.tensor([float(rank)])
        half.allreduce(total).wait()
        assert total == sum(mine)
        quarter = half.split_group([half.rank()])
        quarter.allreduce(total).wait()
        assert total == sum(mine)
        assert backend.options._timeout == before          # the parent keeps its own
    if rank != 0:
        assert world.split_group([0]) is None
    else:
        world.split_group([0]).barrier().wait()
    options = medley.torch.Options(rules="all_reduce=shm")
    assert copy.deepcopy(options).rules == options.rules
    dist.barrier()


def test_split_group():
    groups.run(4, split)


def merged(path):
    """Every rank is its own job; they rendezvous in a store that both can reach."""
    rank = int(os.environ["RANK"])
    dist.init_process_group("medley", store=dist.HashStore(), rank=0, world_size=1)
    alone = dist.distributed_c10d._get_default_group()
    both = alone.merge_remote_group(dist.FileStore(path, 2), 2)
    total = torch.tensor([float(rank)])
    both.allreduce(total).wait()
    again = sum_over(None)                                   # the job itself continues
    both.shutdown()
    dist.destroy_process_group()
    return total.item(), again


def test_groups_of_two_jobs_are_merged(tmp_path):
    assert ranks.run(2, merged, str(tmp_path / "store")) == [(1.0, 0.0), (1.0, 0.0)]


def monitored(name):
    dist.init_process_group(name, timeout=datetime.timedelta(seconds=30))
    dist.monitored_barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=20), wait_all_ranks=True)
    pair = dist.new_group([0, 1])
    dist.monitored_barrier(pair)
    said = ""
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError) as caught:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.2), wait_all_ranks=True)
        said = str(caught.value)
    dist.barrier()
    dist.destroy_process_group()
    return said


@pytest.mark.parametrize("name", ["medley", "cpu:medley,cuda:medley"])
def test_monitored_barrier_by_its_own_name(name):
    said, *_ = ranks.run(3, monitored, name)
    assert said.startswith("Ranks 1, 2 failed to pass monitoredBarrier in 200 ms"), said


def monitored_by_others():
    dist.init_process_group("gloo")
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))    # torch's own is unchanged
    assert dist.distributed_c10d._get_default_group()._get_sequence_number_for_group() >= 0
    dist.destroy_process_group()


def test_gloo_keeps_its_monitored_barrier_and_sequence_numbers():
    ranks.run_over("gloo", 2, monitored_by_others)


def sequence_numbers():
    world = dist.distributed_c10d._get_default_group()
    pair = dist.new_group([0, 1])
    world._set_sequence_number_for_group()
    counted = []
    for group in (world, pair):
        if dist.get_rank() > 1 and group is pair:
            continue
        before = group._get_sequence_number_for_group()
        for _ in range(3):
            dist.all_reduce(torch.ones(2), group=group)
        counted.append(group._get_sequence_number_for_group() - before)
    return world._get_sequence_number_for_group(), counted


def test_sequence_numbers():
    first, second, third = groups.run(3, sequence_numbers)
    assert first == second and first[0] == third[0]
    assert (first[1], third[1]) == ([3, 3], [3])


def replaced_without_a_name():
    medley.torch.replace("gloo")
    dist.init_process_group()
    made = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert isinstance(made, medley.torch.ProcessGroupMedley)
    total = sum_over(None)
    group = dist.new_group()
    assert sum_over(group) == total
    dist.destroy_process_group()
    return total


@pytest.mark.skipif(torch.cuda.is_available(), reason="without a name torch takes nccl where there is a GPU")
def test_replace_gloo_without_a_name():
    assert ranks.run(2, replaced_without_a_name) == [1.0, 1.0]
