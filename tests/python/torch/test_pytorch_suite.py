"""PyTorch's own suite: a part of it in every ./test, the whole in ./test --full. See pytorch_suite.py."""

import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def names(file):
    return [line.split("#")[0].strip() for line in (HERE / file).read_text().splitlines() if line.split("#")[0].strip()]


def run(*arguments, timeout):
    done = subprocess.run([sys.executable, str(HERE / "pytorch_suite.py"), *arguments], capture_output=True, text=True,
                          timeout=timeout, cwd=HERE)
    outcomes = dict(reversed(found) for found in re.findall(r"^(ok|skipped|FAILED|ERROR) +(\w+) [\d.]+s$", done.stdout, re.M))
    return outcomes, done.stdout[-6000:] + done.stderr[-2000:]


def test_part():
    outcomes, said = run("--list", str(HERE / "suite_part.txt"), timeout=800)
    assert set(outcomes) == set(names("suite_part.txt")), said
    assert set(outcomes.values()) == {"ok"}, said


@pytest.mark.parametrize("arguments", [(), ("--as", "gloo")], ids=["as medley", "as gloo"])
def test_whole(arguments):
    outcomes, said = run(*arguments, timeout=3500)
    failed = {name for name, outcome in outcomes.items() if outcome in ("FAILED", "ERROR")}
    assert len(outcomes) > 250, said
    assert failed <= set(names("suite_exceptions.txt")), said
