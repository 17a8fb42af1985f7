"""The command on a terminal: progress, colours, completion, help, and what it says about misspelt words.

    python3 tests/cli/terminal_test.py build/release/bin/medley
"""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

MEDLEY = os.path.abspath(sys.argv.pop()) if len(sys.argv) > 1 else "medley"


def run(*words, **environment):
    return subprocess.run([MEDLEY, *words], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def on_terminal(*words, **environment):
    """What the command writes when stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([MEDLEY, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                               env={**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, "TERM": "xterm", **environment})
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            more = os.read(ours, 65536)
        except OSError:   # the last writer has closed the terminal
            break
        if not more:
            break
        said += more
    process.wait()
    os.close(ours)
    return said.decode()


class Terminal(unittest.TestCase):
    LONG = ("bench", "-n", "1", "--op", "all_reduce", "--sizes", "4:4M", "--backends", "shm", "--seconds", "3")

    def test_long_work_shows_a_bar_on_a_terminal_and_nothing_in_a_pipe(self):
        said = on_terminal(*self.LONG)
        self.assertRegex(said, r"\r\[#* *\] +\d+ %")
        self.assertIn("\r\x1b[K", said)
        self.assertEqual(run(*self.LONG).stderr, "")

    def test_quick_work_shows_no_bar(self):
        self.assertNotIn("\r\x1b[K", on_terminal("plan", "--model", "pythia-70m", "--layout", "dp=2", "--sweep", "tp=1,2"))

    def test_errors_are_red_unless_told_otherwise(self):
        self.assertIn("\x1b[1;31mmedley:\x1b[0m", on_terminal("nonsense"))
        for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b[", on_terminal("nonsense", **quiet))
        self.assertTrue(run("nonsense").stderr.startswith("medley: "))


class Suggestions(unittest.TestCase):
    def test_misspelt_words_are_answered_with_the_nearest(self):
        for words, meant in [
            (["benhc"], "did you mean bench?"),
            (["bench", "--backedns", "shm"], "medley bench knows no option --backedns; did you mean --backends?"),
            (["shape", "serach"], "did you mean search?"),
            (["shape", "search", "--hiden-step", "64"], "did you mean --hidden-step?"),
            (["bench", "--backends", "smh"], "did you mean shm?"),
            (["shape", "--model", "gpt2-xl", "--gpu", "h200-sxn"], "did you mean h200-sxm?"),
            (["plan", "--model", "pythia-70m", "--layout", "dp=2", "--machine", "dgx-h10"], "did you mean dgx-h100?"),
            (["plan", "--model", "lama-2-7b", "--layout", "dp=2"], "did you mean llama-2-7b?"),
            (["bench", "--op", "all_redcue"], "did you mean all_reduce?"),
            (["help", "rotues"], "did you mean routes?"),
            (["bench", "--entirely-different"], "see medley bench --help"),
        ]:
            said = run(*words)
            self.assertEqual(said.returncode, 2, said)
            self.assertIn(meant, said.stderr)
            self.assertEqual(said.stderr.count("\n"), 1)


class Help(unittest.TestCase):
    def test_help_is_the_commands_own_or_a_topic(self):
        self.assertEqual(run("help", "tune").stdout, run("tune", "--help").stdout)
        self.assertEqual(run("help", "shape", "search").stdout, run("shape", "search", "--help").stdout)
        self.assertIn("MEDLEY_TRACE", run("help", "environment").stdout)
        self.assertIn("Topics for medley help:", run("help").stdout)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in ("medley", *words))
        script = f"""source <("{MEDLEY}" completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _medley; printf '%s\\n' "${{COMPREPLY[@]}}" """
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=tempfile.gettempdir())
        self.assertEqual(said.stderr, "")
        return said.stdout.split()

    def test_bash_completes_commands_options_and_names(self):
        self.assertIn("reconcile", self.complete("re"))
        self.assertEqual(self.complete("tune", "--sec"), ["--seconds"])
        self.assertEqual(self.complete("shape", "sea"), ["search"])
        self.assertIn("--hidden-step", self.complete("shape", "search", "--h"))
        self.assertNotIn("--hidden-step", self.complete("shape", "--h"))
        self.assertIn("gpt2-xl", self.complete("shape", "--model", "gpt2"))
        self.assertEqual(self.complete("list", "ma"), ["machines"])
        self.assertNotIn("--progress-to", self.complete("soak", "--p"))   # hidden

    def test_the_other_shells_accept_their_scripts(self):
        for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
            script = run("completion", shell).stdout
            self.assertIn("reconcile", script)
            if not shutil.which(shell):
                continue   # its syntax cannot be checked here
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(script)
                file.flush()
                said = subprocess.run([*check, file.name], capture_output=True, text=True, timeout=60)
                self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual(run("completion", "tcsh").returncode, 2)


if __name__ == "__main__":
    unittest.main()
