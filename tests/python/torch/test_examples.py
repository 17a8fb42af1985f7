"""The training examples: each agrees with its own single-process run, and its losses with gloo's.

With two ranks every sum has two terms, so the order cannot matter and the bits must be equal, unless the example says
otherwise in BOUNDS."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch"
NAMES = ["ddp_gpt", "zero1_gpt", "fsdp2_gpt", "tp_gpt", "pp_gpt", "parallel_3d", "moe_gpt", "dlrm"]
BOUNDS: dict[str, float] = {}


def losses(name, backend):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0",
               "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", str(EXAMPLES / f"{name}.py"),
               "--backend", backend, "--steps", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("bits"))
    return [float.fromhex(word) for word in line.split()[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_losses_equal_gloos(name):
    ours, theirs = losses(name, "medley"), losses(name, "gloo")
    if name in BOUNDS:
        assert max(abs(a - b) for a, b in zip(ours, theirs)) <= BOUNDS[name]
    else:
        assert ours == theirs
