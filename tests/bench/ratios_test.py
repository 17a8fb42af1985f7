"""bench/mpi/ratios.py: ratios, intervals and means."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/mpi"))
import ratios


def cell(rows, op="all_reduce", size=4):
    made = ratios.Cell(op, size, None)
    made.repetitions = [dict(zip(("medley", "openmpi", "mpich"), row)) for row in rows]
    return made


class Ratios(unittest.TestCase):
    def test_the_better_mpi_counts(self):
        made = cell([(1, 2, 3)] * 5)
        self.assertEqual((made.better(), made.ratio()), ("openmpi", 2))
        self.assertEqual(made.interval(), (2, 2))

    def test_a_slow_spell_of_the_whole_machine_changes_nothing(self):
        made = cell([(1, 2, 9), (1, 2, 9), (3, 6, 27), (3, 6, 27), (3, 6, 27), (1, 2, 9)])
        self.assertEqual(made.interval(), (2, 2))
        self.assertTrue(made.stable(0.01))

    def test_noise_widens_the_interval(self):
        made = cell([(1, 2, 9), (1, 1, 9), (1, 3, 9), (1, 2.5, 9), (1, 1.5, 9)])
        low, high = made.interval()
        self.assertLess(low, 2)
        self.assertGreater(high, 2)
        self.assertFalse(made.stable(0.05))

    def test_few_repetitions_prove_nothing(self):
        made = cell([(2, 1, 1)] * 4)
        self.assertEqual(made.interval(), (None, None))
        self.assertFalse(made.slower() or made.stable(1))

    def test_slower_needs_the_whole_interval_below_the_limit(self):
        self.assertTrue(cell([(2, 1, 1)] * 5).slower())
        self.assertFalse(cell([(1, 0.96, 1)] * 5).slower())
        self.assertFalse(cell([(1, 0.9, 2), (1, 0.9, 2), (1, 0.9, 2), (1, 1.1, 2), (1, 1.1, 2)]).slower())

    def test_over_all_operations_each_counts_alike(self):
        cells = [cell([(1, 4, 4)] * 5, size=4), cell([(1, 4, 4)] * 5, size=16), cell([(1, 1, 1)] * 5, op="barrier", size=0)]
        means = ratios.means(cells, count=50)
        self.assertAlmostEqual(means["all_reduce"][0], 4)
        self.assertAlmostEqual(means["all"][0], 2)
        self.assertAlmostEqual(means["all cells"][0], 16 ** (1 / 3))
        self.assertAlmostEqual(means["all"][1], 2)

    def test_a_mean_is_no_surer_than_its_least_known_cell(self):
        means = ratios.means([cell([(1, 4, 4)] * 5), cell([(1, 4, 4)] * 2, op="barrier")], count=50)
        self.assertEqual(means["all"][1:], (None, None))
        self.assertAlmostEqual(means["all_reduce"][1], 4)

    def test_floor_is_a_paired_difference(self):
        rows = [{"medley": base + 0.05, "flags": base} for base in (0.1, 0.3, 0.1, 0.3, 0.3)]
        for value in ratios.floor_difference(rows):
            self.assertAlmostEqual(value, 0.05)


if __name__ == "__main__":
    unittest.main()
