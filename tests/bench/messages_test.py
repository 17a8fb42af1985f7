"""bench/messages/compare: whole comparisons between stand-ins that print the rows of its programs."""
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH / "messages"), str(BENCH / "mpi")]
sys.dont_write_bytecode = True
import messengers

loader = importlib.machinery.SourceFileLoader("compare_messages", str(BENCH / "messages/compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_messages", loader))
loader.exec_module(compare)

ROWS = """import json; print(json.dumps({{"version": "1", "rows": [
    {{"op": "ping_pong", "bytes": 8, "median_us": {0}}}, {{"op": "window_8", "bytes": 24, "median_us": 10 * {0}}}]}}))"""


def stand_in(name, us, rivals=()):
    return messengers.Messenger(name, [sys.executable, "-c", ROWS.format(us)], list(rivals), {"command": name})


class WholeComparison(unittest.TestCase):
    def run_compare(self, everyone):
        with tempfile.TemporaryDirectory() as folder:
            for program in ("medley", "messages_medley", "flag_exchange"):
                (Path(folder) / program).touch(mode=0o755)
            command = ["compare", "--programs", folder, "--out", folder]
            with mock.patch.object(sys, "argv", command), mock.patch.object(messengers, "everyone", lambda _: everyone), \
                    mock.patch.object(compare, "Gauge", lambda *_: mock.Mock(read=lambda batch: 0.1)), \
                    mock.patch.object(compare, "Bystanders", lambda *_: mock.Mock(crowding=lambda: 0)), \
                    redirect_stdout(io.StringIO()) as page, redirect_stderr(io.StringIO()):
                compare.main()
            return json.loads((Path(folder) / "messages.json").read_text()), page.getvalue()

    def test_each_medley_beside_its_own_libraries(self):
        everyone = [stand_in("medley/shm", 2, ["openmpi", "ucx"]), stand_in("medley/ucx", 8, ["ucx"]), stand_in("openmpi", 3),
                    stand_in("ucx", 4)]
        result, page = self.run_compare(everyone)
        rows = {(row["medley"], row["op"]): row for row in result["rows"]}
        self.assertEqual(len(rows), 4)
        self.assertEqual((rows["medley/shm", "ping_pong"]["better"], rows["medley/shm", "ping_pong"]["ratio"]), ("openmpi", 1.5))
        self.assertEqual(rows["medley/shm", "ping_pong"]["more_us"], -1)
        self.assertEqual((rows["medley/ucx", "window_8"]["ratio"], rows["medley/ucx", "window_8"]["more_us"]), (0.5, 40))
        self.assertNotIn("openmpi_us", rows["medley/ucx", "window_8"])
        self.assertEqual(len(rows["medley/ucx", "window_8"]["repetitions"]), 5)
        self.assertIn("| 8 × 24 B both ways | 80.0 | 40.0 | 0.50× | 0.50–0.50 | +40.00 |", page)


class Commands(unittest.TestCase):
    def test_seconds_reach_the_program_on_hosts_too(self):
        self.assertEqual(messengers.with_seconds(["a", "b"], 1), ["a", "b", "--seconds", "1"])
        on_hosts = messengers.on_hosts("run_ranks", {"A": "b c"}, ["program", "ucx"])
        self.assertIn("run_ranks 2 1 'A=b c' -- ", on_hosts[2])
        self.assertTrue(messengers.with_seconds(on_hosts, 1)[2].endswith("program ucx --seconds 1"))


if __name__ == "__main__":
    unittest.main()
