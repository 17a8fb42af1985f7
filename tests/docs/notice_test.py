"""The checks notice what they are for."""

import pathlib
import tempfile
import unittest

import check_commands
import check_text
import documents


def document(text):
    folder = pathlib.Path(tempfile.mkdtemp(dir=documents.ROOT / "out"))
    path = folder / "README.md"
    path.write_text(text)
    return path


class Notice(unittest.TestCase):
    def setUp(self):
        (documents.ROOT / "out").mkdir(exist_ok=True)

    def problems(self, text):
        path = document(text)
        try:
            return [what for _, what in check_text.problems_of(path)]
        finally:
            path.unlink()
            path.parent.rmdir()

    def commands(self, text):
        path = document(text)
        try:
            return [words for _, words in check_commands.commands_of(path)]
        finally:
            path.unlink()
            path.parent.rmdir()

    def test_placeholders(self):
        self.assertEqual(self.problems("```\n@SHAPE@\n```\n"), ["holds the placeholder @SHAPE@"])
        self.assertEqual(len(self.problems("TODO: measure\n")), 1)
        self.assertEqual(self.problems("all_reduce@cuda=nccl and *@cuda=nccl\n"), [])

    def test_links(self):
        self.assertEqual(len(self.problems("[a](missing.md)\n")), 1)
        self.assertEqual(len(self.problems("# A heading\n[a](#a-heading) [b](#another)\n")), 1)
        self.assertEqual(self.problems("# What `this` is: 2 things\n[a](#what-this-is-2-things)\n"), [])

    def test_commands(self):
        found = self.commands("```\n$ A=1 medley trace d \\\n    --csv f   # why\nits output\n```\nand `medley bench -n 2 --op x`\n")
        self.assertEqual(found, [["medley", "trace", "d", "--csv", "f"], ["medley", "bench", "-n", "2", "--op", "x"]])
        self.assertIsNotNone(check_commands.problem_of(["cmake", "--preset", "nonesuch"], "medley"))
        self.assertIsNotNone(check_commands.problem_of(["./nonesuch"], "medley"))


if __name__ == "__main__":
    unittest.main()
