"""The training examples: each agrees with its own single-process run, and its losses with gloo's, bit for bit: with two
ranks every sum has two terms, so the order cannot matter."""

import contextlib
import importlib.util
import io
import os
import pathlib
import runpy
import subprocess
import sys

import pytest
import ranks

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch"
NAMES = ["ddp_gpt", "zero1_gpt", "fsdp2_gpt", "tp_gpt", "tp_dp_gpt", "pp_gpt", "parallel_3d", "moe_gpt", "dlrm"]


def losses(said):
    line = next(line for line in said.splitlines() if line.startswith("bits"))
    return [float.fromhex(word) for word in line.split()[1:]]


def run_example(name, backend):
    """Runs the program in this rank, as torchrun would, and returns what it printed."""
    os.chdir(EXAMPLES)
    sys.path.insert(0, str(EXAMPLES))
    sys.argv = [f"{name}.py", "--backend", backend, "--steps", "3"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        runpy.run_path(f"{name}.py", run_name="__main__")
    assert ended.value.code == 0, said.getvalue()
    return said.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_losses_equal_gloos(name):
    ours, theirs = (losses(ranks.run_over(backend, 2, run_example, name, backend)[0]) for backend in ("medley", "gloo"))
    assert len(ours) >= 3 and ours == theirs


def test_four_ranks_with_tensor_and_data_parallelism():
    """2 x 2; the program compares its losses with those of one process."""
    ranks.run(4, run_example, "tp_dp_gpt", "medley", timeout=200)


def test_eight_ranks_in_three_dimensions():
    """2 x 2 x 2; the program compares its losses with those of one process. In ./test --full, for its time."""
    ranks.run(8, run_example, "parallel_3d", "medley", timeout=400)


def test_eight_ranks_share_five_tables():
    """Three ranks have none, and take part in all exchanges. In ./test --full, for its time."""
    ranks.run(8, run_example, "dlrm", "medley", timeout=400)


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_deepspeeds_experts():
    """Its layer sends tokens to experts by all_to_all over a group that DeepSpeed makes; the program
    compares its losses with our single-process run."""
    ours, theirs = (losses(ranks.run_over(backend, 2, run_example, "deepspeed_moe", backend)[0]) for backend in ("medley", "gloo"))
    assert len(ours) >= 3 and ours == theirs


def test_torchrun():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
               "--rdzv-endpoint", "127.0.0.1:0", str(EXAMPLES / "ddp_gpt.py"), "--steps", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert len(losses(done.stdout)) == 2
