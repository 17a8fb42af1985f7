"""bench/torch/steps.py: what ratios of interleaved runs show."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "torch"))

import steps


class Conclusions(unittest.TestCase):
    def test_the_interval_holds_the_median_with_95_percent(self):
        self.assertIsNone(steps.interval_of_median([1.0] * 5))
        self.assertEqual(steps.interval_of_median([3, 1, 2, 6, 5, 4]), (1, 6))
        self.assertEqual(steps.interval_of_median(list(range(1, 21))), (6, 15))   # as in tables of the sign test

    def test_few_rounds_show_nothing(self):
        said = steps.conclusion("ddp_gpt", [0.91, 1.05, 0.94], 60)
        self.assertIn("too few rounds (3) to tell", said)
        self.assertIn("0.91 to 1.05", said)
        self.assertIn("give --seconds 420", said)
        self.assertIn("no round ended", steps.conclusion("ddp_gpt", [], 15))

    def test_an_interval_around_1_is_no_difference(self):
        self.assertIn("no difference shows", steps.conclusion("ddp_gpt", [0.9, 1.1] * 5, 60))
        said = steps.conclusion("moe_gpt", [1.2, 1.3] * 5, 60)
        self.assertEqual(said, "moe_gpt: medley is 1.25 times as fast as gloo (95 % interval 1.20 to 1.30, 10 rounds)")


if __name__ == "__main__":
    unittest.main()
