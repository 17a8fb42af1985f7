"""PyTorch's own suite with 2, 3 and 4 ranks: a part of it in every ./test, the whole in ./test --full. See pytorch_suite.py.

What passes for gloo passes for Medley, except the tests in suite_exceptions.txt. A listed test that passes is a failure here,
so that the list stays correct."""

import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
SIZES = (2, 3, 4)


def lines(file):
    return [line.split("#")[0].strip() for line in (HERE / file).read_text().splitlines() if line.split("#")[0].strip()]


def exceptions(name, size):
    """Those of suite_exceptions.txt for Medley under this name (medley or gloo) with this many ranks."""
    listed = set()
    for line in lines("suite_exceptions.txt"):
        test, names, sizes = line.split()
        if name in names.split(",") and str(size) in sizes.split(","):
            listed.add(test)
    return listed


def run(size, *arguments, timeout):
    done = subprocess.run([sys.executable, str(HERE / "pytorch_suite.py"), "--ranks", str(size), *arguments], capture_output=True,
                          text=True, timeout=timeout, cwd=HERE)
    outcomes = dict(reversed(found) for found in re.findall(r"^(ok|skipped|FAILED|ERROR) +(\w+) [\d.]+s$", done.stdout, re.M))
    return outcomes, done.stdout[-6000:] + done.stderr[-2000:]


def named(outcomes, *wanted):
    return {name for name, outcome in outcomes.items() if outcome in wanted}


@pytest.mark.parametrize("size", SIZES)
def test_part(size):
    outcomes, said = run(size, "--list", str(HERE / "suite_part.txt"), timeout=800)
    assert set(outcomes) == set(lines("suite_part.txt")), said
    assert named(outcomes, "ok") == set(outcomes), said


@pytest.mark.parametrize("size", SIZES)
def test_whole_as_medley(size):
    outcomes, said = run(size, timeout=3500)
    assert len(outcomes) > 250, said
    assert named(outcomes, "FAILED", "ERROR") == exceptions("medley", size), said


@pytest.mark.parametrize("size", SIZES)
def test_whole_as_gloo(size):
    """In place of gloo, Medley passes what gloo itself passes here."""
    of_gloo, said = run(size, "--plain", "gloo", timeout=3500)
    assert len(named(of_gloo, "ok")) > 80, said
    outcomes, said = run(size, "--as", "gloo", timeout=3500)
    assert named(of_gloo, "ok") - named(outcomes, "ok") == exceptions("gloo", size), said
