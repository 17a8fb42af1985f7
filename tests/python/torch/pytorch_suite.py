"""PyTorch's own tests of its process groups, from the installed wheel, on Medley with two to four ranks.

    python pytorch_suite.py                   # all of them; the last lines say what failed
    python pytorch_suite.py -k all_gather     # those with that in their name
    python pytorch_suite.py --as gloo         # through medley.torch.replace("gloo"): also tests that need gloo's name
    python pytorch_suite.py --plain gloo      # torch's own gloo, for comparison
    python pytorch_suite.py --list FILE       # the tests that FILE lists, one per line
    python pytorch_suite.py --ranks 4         # default: three
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import unittest


def prepare(backend: str, replaced: bool, size: int) -> None:
    """Sets what the suite reads on import."""
    folder = tempfile.mkdtemp(prefix="medley-suite-")
    os.makedirs(os.path.join(folder, "barrier"))
    os.makedirs(os.path.join(folder, "test_dir"))
    os.environ.update(BACKEND=backend, WORLD_SIZE=str(size), TEMP_DIR=folder, OMP_NUM_THREADS="1",
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=os.environ.get("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "120"))
    import medley.torch
    from torch.testing._internal.common_distributed import DistTestCases
    if replaced:
        medley.torch.replace(backend)
    for feature in ("ddp", "subgroup", "plugin"):
        DistTestCases.backend_feature[feature].add("medley")
    from torch.testing._internal.distributed import distributed_test
    # Medley's operations are profiled, under its own name.
    for backends in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        if replaced:
            del backends[:]
        else:
            backends.append("medley")


def suite_class() -> type[unittest.TestCase]:
    import torch
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    class Suite(TestDistBackend, DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)   # saves importing torch each time

    return Suite


class Results(unittest.TestResult):
    """One line per test, and the last lines of failed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: list[str] = []
        self.began = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.began = time.monotonic()

    def line(self, test: unittest.TestCase, how: str) -> None:
        print(f"{how:7} {test._testMethodName} {time.monotonic() - self.began:.1f}s", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.passed.append(test._testMethodName)
        self.line(test, "ok")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.line(test, "skipped")

    def addFailure(self, test: unittest.TestCase, err) -> None:
        super().addFailure(test, err)
        self.line(test, "FAILED")
        print(self.failures[-1][1][-3000:], flush=True)

    def addError(self, test: unittest.TestCase, err) -> None:
        super().addError(test, err)
        self.line(test, "ERROR")
        print(self.errors[-1][1][-3000:], flush=True)


def run(names: list[str]) -> Results:
    case = suite_class()
    results = Results()
    for name in names:
        unittest.TestSuite([case(name)]).run(results)
    return results


def all_names() -> list[str]:
    return unittest.TestLoader().getTestCaseNames(suite_class())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only tests with this in their name")
    parser.add_argument("--as", dest="replaced", help="the name of a backend that Medley replaces")
    parser.add_argument("--plain", help="one of torch's own backends, without Medley")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--list", help="a file that names the tests, one a line")
    arguments = parser.parse_args()
    prepare(arguments.plain or arguments.replaced or "medley", arguments.replaced is not None, arguments.ranks)
    names = all_names()
    if arguments.list:
        with open(arguments.list) as file:
            wanted = [line.split("#")[0].strip() for line in file]
        names = [name for name in wanted if name]
    results = run([name for name in names if arguments.k in name])
    print(f"{len(results.passed)} passed, {len(results.skipped)} skipped, {len(results.failures) + len(results.errors)} failed")
    return 0 if results.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
