"""bench/mpi/compare: its command line, and whole comparisons between stand-ins that print `medley bench`'s JSON."""
import importlib.machinery
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[2] / "bench/mpi"
sys.path.insert(0, str(BENCH))
sys.dont_write_bytecode = True
import alternation
import candidates
import noise

loader = importlib.machinery.SourceFileLoader("compare", str(BENCH / "compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)

# Prints rows of a constant time; what it was called with goes beside it.
STAND_IN = """#!{python}
import json, sys
arguments = sys.argv[1:]
open(__file__ + ".calls", "a").write(" ".join(arguments) + "\\n")
if "--version" in arguments:
    print("stand-in 1.0"); sys.exit()
op = arguments[arguments.index("--op") + 1]
first, last = map(int, arguments[arguments.index("--sizes") + 1].split(":"))
sizes = [0] if op == "barrier" else sorted({{first, last}})
print(json.dumps({{"ranks": 2, "rows": [{{"op": op, "backend": "{backend}", "bytes": b, "median_us": {us}}} for b in sizes]}}))
"""


class SteadyGauge:
    def __init__(self, *_):
        pass

    def read(self, batch):
        return 0.1


class NoBystanders:
    def __init__(self, *_):
        pass

    def reset(self):
        pass

    def crowding(self):
        return 0


class WholeComparison(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def stand_in(self, name, backend, us):
        path = self.folder / name
        path.write_text(STAND_IN.format(python=sys.executable, backend=backend, us=us))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_compare(self, medley_us, mpi_us, *arguments):
        medley = self.stand_in("medley", "shm", medley_us)
        rival = candidates.Candidate("openmpi", [str(self.stand_in("mpi", "openmpi", mpi_us))],
                                       about={"version": "1", "command": "mpi"})
        command = ["compare", "--medley", str(medley), "--mpis", "openmpi", "--out", str(self.folder), *arguments]
        with mock.patch.object(sys, "argv", command), mock.patch.object(candidates, "mpi", lambda *_: rival), \
                mock.patch.object(compare, "Gauge", SteadyGauge), mock.patch.object(compare, "Bystanders", NoBystanders), \
                redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as errors:
            status = compare.main()
        return status, json.loads((self.folder / "compare-n2.json").read_text()), errors.getvalue()

    def test_twice_as_fast_everywhere(self):
        status, result, _ = self.run_compare(1, 2, "--ops", "all_reduce,barrier", "--sizes", "4:1M", "--goal", "all=1.9")
        self.assertEqual(status, 0)
        self.assertEqual({(row["op"], row["bytes"]) for row in result["rows"]},
                         {("all_reduce", 4), ("all_reduce", 64 << 10), ("all_reduce", 256 << 10),
                          ("all_reduce", 1 << 20), ("barrier", 0)})
        self.assertTrue(all(row["ratio"] == 2 and len(row["repetitions"]) == 5 for row in result["rows"]))
        self.assertAlmostEqual(result["floor"]["difference_us"], 0.9)
        calls = (self.folder / "medley.calls").read_text()
        self.assertIn("bench -n 2 --backends shm --op all_reduce --sizes 4:65536 --seconds 0.16 --json -", calls)

    def test_a_named_algorithm_of_a_rooted_operation(self):
        status, result, _ = self.run_compare(1, 2, "--ops", "scatter,reduce", "--sizes", "4:4", "--algorithm", "segment")
        self.assertEqual(status, 0)
        self.assertEqual([row["op"] for row in result["rows"]], ["reduce", "scatter"])
        self.assertIn("bench -n 2 --backends shm --algorithms segment --op scatter", (self.folder / "medley.calls").read_text())

    def test_a_slower_cell_is_named_and_fails(self):
        status, _, errors = self.run_compare(2, 1, "--ops", "broadcast", "--sizes", "4:4")
        self.assertEqual(status, 1)
        self.assertIn("broadcast 4 B: 0.50x of openmpi", errors)

    def test_a_missed_goal_fails(self):
        status, _, errors = self.run_compare(1, 2, "--ops", "broadcast", "--sizes", "4:4", "--goal", "broadcast=2.5")
        self.assertEqual(status, 1)
        self.assertIn("broadcast: geometric mean 2.00, wanted 2.5", errors)

    def test_without_time_nothing_is_claimed(self):
        status, _, errors = self.run_compare(1, 2, "--ops", "broadcast", "--sizes", "4:4", "--minutes", "0.0001")
        self.assertEqual(status, 1)
        self.assertIn("fewer than 5 repetitions", errors)


class Weather(unittest.TestCase):
    """A comparison of two, whose successive tries of one repetition take 5, 1 and 7 µs."""

    def attempt(self, gauge, crowding):
        readings, crowds = iter(gauge), iter(crowding)
        rows = iter({("barrier", 0): us} for us in (5, 15, 1, 2, 7, 21))
        everyone = [mock.Mock(measure=lambda *_: next(rows)) for _ in range(2)]
        everyone[0].name, everyone[1].name = "medley", "openmpi"
        options = mock.Mock(minutes=1, batch="1", seconds=0.02, ranks=2)
        bystanders = mock.Mock(crowding=lambda: next(crowds))
        comparison = alternation.Comparison(options, everyone, mock.Mock(read=lambda batch: next(readings)), bystanders)
        comparison.attempt(("barrier", (4, 4)))
        return comparison.discarded, comparison.unsettled, comparison.cells["barrier", 0].repetitions

    def test_a_repetition_during_a_change_is_made_again(self):
        self.assertEqual(self.attempt([0.1, 0.1, 0.3, 0.1, 0.1, 0.1], [0, 0]), (1, 0, [{"medley": 1, "openmpi": 2}]))

    def test_a_repetition_on_a_crowded_machine_is_made_again(self):
        self.assertEqual(self.attempt([0.1] * 6, [1.5, 0.05]), (1, 0, [{"medley": 1, "openmpi": 2}]))

    def test_the_third_try_is_kept_and_counted(self):
        self.assertEqual(self.attempt([0.1] * 9, [1, 1, 1]), (2, 1, [{"medley": 7, "openmpi": 21}]))

    def test_our_own_children_are_no_bystanders(self):
        bystanders = noise.Bystanders(ranks=os.cpu_count())
        with mock.patch.object(bystanders, "busy_seconds", return_value=bystanders.start[1] + 100):
            self.assertGreater(bystanders.crowding(), 1)  # 100 s of somebody's work
        bystanders.start = (bystanders.start[0] - 10, bystanders.start[1], bystanders.start[2] - 5)
        with mock.patch.object(bystanders, "busy_seconds", return_value=bystanders.start[1] + 5):
            self.assertLess(bystanders.crowding(), 0.1)  # the 5 s were ours

    def test_chunks_cover_the_sizes_once(self):
        self.assertEqual(alternation.chunks((4, 64 << 20)), [(4, 64 << 10), (256 << 10, 4 << 20), (16 << 20, 64 << 20)])
        self.assertEqual(alternation.chunks((8, 8)), [(8, 8)])
        self.assertEqual(alternation.chunks((1 << 20, 3 << 20)), [(1 << 20, 3 << 20)])


class CommandLine(unittest.TestCase):
    def test_bad_values_are_named_in_one_line(self):
        for arguments, value in ((["--ops", "reduce_all"], "reduce_all"), (["--sizes", "4Q"], "4Q"),
                                 (["--sizes", "8:4"], "8:4"), (["--mpis", "lam"], "lam"), (["--goal", "all=x"], "all=x")):
            with self.subTest(arguments), mock.patch.object(sys, "argv", ["compare", *arguments]), \
                    redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit) as caught:
                compare.parse()
            self.assertEqual(caught.exception.code, 2)
            self.assertIn(value, errors.getvalue())
            self.assertEqual(errors.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
