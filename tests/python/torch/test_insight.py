"""What training programs send, as `medley trace` and `medley reconcile` see it: the examples compared with
predictions made before they ran, and Medley's own recording with those of PyTorch's and DeepSpeed's tools."""

import collections
import csv
import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest
import ranks
from test_examples import EXAMPLES, NAMES, run_example

import medley

MEDLEY = pathlib.Path(medley._core.__file__).parents[2] / "bin" / "medley"   # of the same build
pytestmark = pytest.mark.skipif(not MEDLEY.exists(), reason=f"{MEDLEY} is not there")
sys.path.insert(0, str(EXAMPLES))
STEP = 3   # the compared step: in the first two, DDP has other buckets, and broadcasts the new ones


def run_medley(*arguments):
    return subprocess.run([MEDLEY, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def traced(folder, name, size=2):
    ranks.run(size, run_example, name, "medley", timeout=200, environment={"MEDLEY_TRACE": str(folder)})
    return folder


def expectation(folder, name, size=2):
    """Options of medley reconcile with the expectation."""
    import expected
    ignored = ["--ignore", expected.IGNORED[name]] if name in expected.IGNORED else []
    if name in expected.PLANNED:
        return shlex.split(expected.PLANNED[name](size)) + ignored
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(expected.schedule(name, size, STEP)))
    return ["--schedule", str(file), *ignored]


def reconciled(folder, *options):
    done = run_medley("reconcile", folder, *options, "--step", STEP, "--assert", "--json", "-")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def check_example(folder, name, size):
    told = reconciled(traced(folder, name, size), *expectation(folder, name, size))
    assert told["differences"] == [], json.dumps(told["differences"], indent=1)
    assert [rank["rank"] for rank in told["ranks"]] == list(range(size)) and all(rank["matched"] > 0 for rank in told["ranks"])
    rows = json.loads(run_medley("trace", folder, "--json", "-").stdout)["rows"]
    assert {"backward"} <= {row["phase"] for row in rows} <= {"", "forward", "backward", "optimizer"}
    if name not in ("pp_gpt", "parallel_3d"):   # a pipeline sends between its modules
        assert any(row["module"] for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_sends_what_was_expected(name, tmp_path):
    check_example(tmp_path / name, name, 2)


def test_four_ranks_in_two_dimensions_send_what_was_expected(tmp_path):
    check_example(tmp_path / "trace", "parallel_3d", 4)


def test_what_was_not_expected_is_told_with_its_cause(tmp_path):
    folder = traced(tmp_path / "trace", "ddp_gpt")
    right = expectation(folder, "ddp_gpt")
    for was, instead, cause in (("bucket_cap_mb=0.25", "bucket_cap_mb=0.5", "bucket_cap_mb is"),
                                ("--dtype f32", "--dtype bf16", "activations and parameters are in f32, not bf16"),
                                ("layers=4", "layers=3", None)):
        told = reconciled(folder, *shlex.split(shlex.join(right).replace(was, instead)))
        causes = {row["cause"] for rank in told["ranks"] for row in rank["rows"] if row["verdict"] != "matched"}
        assert told["differences"]
        if cause:
            assert told["unexplained"] == 0 and any(cause in text for text in causes), causes


def operations(path):
    """How often each rank called which operation with which size; v-collectives count as the regular operation."""
    table = pathlib.Path(f"{path}.csv")
    done = run_medley("trace", path, "--csv", table)
    assert done.returncode == 0, done.stderr
    counts = collections.Counter()
    with open(table) as file:
        for row in csv.DictReader(file):
            counts[int(row["rank"]), row["op"].replace("all_to_allv", "all_to_all"), int(row["bytes"])] += 1
    assert counts
    return counts


def run_profiled(name, folder):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run_example(name, "medley")
    profiler.export_chrome_trace(f"{folder}/rank{os.environ['RANK']}.json")


@pytest.mark.parametrize("name", ["moe_gpt", "fsdp2_gpt", "pp_gpt"])
def test_torch_profiler_saw_the_same(name, tmp_path):
    ours, theirs = tmp_path / "trace", tmp_path / "kineto"
    theirs.mkdir()
    ranks.run(2, run_profiled, name, theirs, timeout=200, environment={"MEDLEY_TRACE": str(ours)})
    assert operations(ours) == operations(theirs)


def run_with_flight_recorder(name, folder):
    from torch._C._distributed_c10d import _dump_fr_trace
    run_example(name, "gloo")
    pathlib.Path(folder, f"rank{os.environ['RANK']}").write_bytes(_dump_fr_trace(True, False, False))


@pytest.mark.parametrize("name", ["moe_gpt", "dlrm"])
def test_pytorchs_flight_recorder_saw_the_same_over_gloo(name, tmp_path):
    theirs = tmp_path / "flight"
    theirs.mkdir()
    ranks.run(2, run_with_flight_recorder, name, theirs, timeout=200, environment={"TORCH_FR_BUFFER_SIZE": "4000"})
    assert operations(traced(tmp_path / "trace", name)) == operations(theirs)


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_sends_what_was_expected_and_logged(stage, tmp_path):
    import expected
    folder, log = tmp_path / "trace", tmp_path / "deepspeed.log"
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
                           "--rdzv-endpoint", "127.0.0.1:0", EXAMPLES / "deepspeed_gpt.py", "--zero", str(stage), "--comms-logger"],
                          capture_output=True, text=True, timeout=400, cwd=EXAMPLES, env={**os.environ, "MEDLEY_TRACE": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    log.write_text(done.stdout)
    told = reconciled(folder, "--model", expected.MODEL, "--layout", f"dp=2,zero={stage}", "--framework", "deepspeed", "--dtype", "f32",
                      "--micro-batch", "4")
    assert told["differences"] == [], json.dumps(told["differences"], indent=1)

    def totals(path):   # the logger rounds sizes to two decimals, and some barriers are not its own
        rows = json.loads(run_medley("trace", path, "--rank", 0, "--steps", 1, "--json", "-").stdout)["rows"]
        sums = collections.defaultdict(lambda: [0, 0])
        for row in rows:
            sums[row["op"]][0] += row["count"]
            sums[row["op"]][1] += row["count"] * row["bytes"]
        return {op: tuple(sum) for op, sum in sums.items() if op != "barrier"}

    ours, theirs = totals(folder), totals(log)
    assert ours.keys() == theirs.keys()
    for op, (count, size) in ours.items():
        assert theirs[op][0] == count and theirs[op][1] == pytest.approx(size, rel=1e-3), op
