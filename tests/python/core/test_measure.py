"""The functions that run or look at a job: started here, joined under a launcher, interrupted, refused."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import textwrap

import medley
import pytest
from medley._command import program

if not program().exists():
    pytest.skip("the command is not built", allow_module_level=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with a schedule, a recorded replay of it and a route table."""
    folder = tmp_path_factory.mktemp("run")
    medley.plan("pythia-70m", "dp=2", framework="ddp", schedule=folder / "step.json")
    reported = []
    replay = medley.replay(folder / "step.json", 2, backends=["shm"], steps=3, scale=0.01, tflops=0, trace=folder / "trace",
                           progress=lambda *now: reported.append(now))
    assert replay.step_us["shm"] > 0 and replay.rows[0].backend == "shm" and reported[-1] == (3, 3, "rounds")
    table = medley.tune(2, folder / "routes.json", op="all_reduce", sizes="1K:4K", backends=["shm"], seconds=1,
                        progress=lambda *now: reported.append(now))
    assert table.file == str(folder / "routes.json") and table.new_cells == len(table.cells) and len(reported) > 3
    return folder


def said(*words):
    answer = subprocess.run([program(), *map(str, words), "--json", "-"], capture_output=True, text=True, timeout=120)
    return json.loads(answer.stdout)


def test_what_looks_at_a_run_gives_what_the_command_writes(run):
    asked = [
        (medley.trace(run / "trace", small="1M"), ["trace", run / "trace", "--small", "1M"]),
        (medley.reconcile(run / "trace", schedule=run / "step.json", scale=0.01),
         ["reconcile", run / "trace", "--schedule", run / "step.json", "--scale", "0.01"]),
        (medley.reconcile(run / "trace", "pythia-70m", "dp=2", framework="megatron", ignore=["dtype"]),
         ["reconcile", run / "trace", "--model", "pythia-70m", "--layout", "dp=2", "--framework", "megatron", "--ignore", "dtype"]),
        (medley.explain(run / "routes.json", "all_reduce", "2K", 2),
         ["explain", "--table", run / "routes.json", "--op", "all_reduce", "--bytes", "2K", "--ranks", "2"]),
        (medley.info(), ["info"]),
    ]
    for result, words in asked:
        expected = said(*words)
        assert result.to_dict() == expected, words
        for name in expected:
            assert hasattr(result, name) or hasattr(result, name + "_"), f"{type(result).__name__} lacks {name}"
        for row, typed in zip(expected[result.ROWS], getattr(result, result.ROWS)):
            assert {name: value for name, value in vars(typed).items() if value is not None} == \
                {name: value for name, value in row.items() if value is not None}
        assert result._repr_html_().startswith(("<table>", "<p>"))
    assert bool(asked[1][0]) and not bool(asked[2][0])


def test_a_trace_is_exported(run, tmp_path):
    medley.trace(run / "trace", csv=tmp_path / "ops.csv", perfetto=tmp_path / "ops.json", chakra=tmp_path / "chakra")
    assert (tmp_path / "ops.csv").read_text().count("\n") > 3
    assert json.loads((tmp_path / "ops.json").read_text()) and (tmp_path / "chakra" / "medley.0.et").exists()


def test_a_watched_job_that_has_ended_says_so(run):
    seen = medley.watch(run / "trace")
    assert seen.ended and seen.world == 2 and seen.operations > 0


def test_a_report_page_is_written(run, tmp_path):
    page = medley.report(run, tmp_path / "report.html", against=run)
    assert (tmp_path / "report.html").read_text().startswith("<!")
    assert {finding.run for finding in page.findings} and page.not_measured[0]["command"].startswith("medley ")
    assert len(page.to_dict()["runs"]) == 2


def test_bench_has_the_fields_of_the_command(run):
    words = "bench -n 2 --op all_reduce --sizes 1K:4K --backends shm,auto --seconds 0.2".split()
    expected = said(*words)
    found = medley.bench(2, op="all_reduce", sizes="1K:4K", backends=["shm", "auto"], seconds=0.2)
    assert [list(row) for row in expected["rows"]] == [list(row) for row in found.to_dict()["rows"]]
    assert all(hasattr(found, name) for name in expected)
    mixed = medley.bench(2, mix="moe", backends=["shm", "auto"], seconds=0.2)
    assert [row.backend for row in mixed.mixes] == ["shm", "auto"]


def test_one_rank_needs_no_launcher_and_leaves_the_caller_as_it_was(run, tmp_path):
    cores = os.sched_getaffinity(0)
    assert medley.bench(1, op="barrier", seconds=0.05).ranks == 1
    medley.plan("pythia-70m", framework="ddp", schedule=tmp_path / "alone.json")
    medley.replay(tmp_path / "alone.json", 1, steps=1, scale=0.01, tflops=0)
    assert os.sched_getaffinity(0) == cores
    assert "MEDLEY_TRACE" not in subprocess.run(["env"], capture_output=True, text=True).stdout


def test_wrong_requests_are_refused_before_a_rank_starts(run, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    for call, words in [
        (lambda: medley.bench(2, op="all_redux"), "all_redux"),
        (lambda: medley.bench(2, sizes="8:4"), "backwards"),
        (lambda: medley.bench(2, mix="soup"), "soup"),
        (lambda: medley.bench(2, dtype="f31"), "f31"),
        (lambda: medley.bench(2, memory="moon"), "moon"),
        (lambda: medley.bench(0), "n=0"),
        (lambda: medley.tune(2, tmp_path / "t.json", dtype=[]), "element type"),
        (lambda: medley.replay(tmp_path / "none.json", 2), "none.json"),
        (lambda: medley.replay(run / "step.json", 3), "3"),
        (lambda: medley.explain(tmp_path / "none.json", "all_reduce", 4, 2), "none.json"),
        (lambda: medley.trace(tmp_path / "none"), "none"),
        (lambda: medley.reconcile(run / "trace"), "expect"),
        (lambda: medley.reconcile(run / "trace", schedule=run / "step.json", ignore="colour"), "colour"),
        (lambda: medley.report(tmp_path / "none", tmp_path / "page.html"), "none"),
    ]:
        with pytest.raises(medley.Invalid, match=words):
            call()


def test_errors_of_ranks_are_raised_here(tmp_path):
    with pytest.raises(medley.Error, match="nonsuch"):
        medley.bench(2, op="barrier", backends=["nonsuch"])
    with pytest.raises(medley.Invalid, match="nonsuch"):
        medley.soak(2, backends=["nonsuch"])


def test_soak_tells_its_progress():
    reported = []
    result = medley.soak(2, programs=30, backends=["shm"], invalid=False, progress=lambda *now: reported.append(now))
    assert result and result.programs == 30 and reported and reported[-1][1:] == (30, "programs")


def test_ranks_of_a_launcher_are_joined(tmp_path):
    script = tmp_path / "joined.py"
    script.write_text(textwrap.dedent("""
        import medley, numpy as np
        medley.init()
        rows = medley.bench(op="all_reduce", sizes="1K", backends=["shm"], seconds=0.1).rows
        assert rows[0].bytes == 1024
        try:
            medley.bench(3)
        except medley.Invalid as error:
            assert "leave n out" in str(error), error
        x = np.ones(1)
        medley.all_reduce("auto", x)
        print("sum", x[0], flush=True)
    """))
    # Without --no-prefix lines of two ranks come one after the other.
    done = subprocess.run([program(), "run", "-n", "2", "--", sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.count("sum 2.0") == 2, done.stdout + done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_interrupted_tuning_saves_its_table_and_leaves_no_rank(tmp_path, ranks):
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(f"""
        import os, signal, medley
        def once(done, of, now):
            if os.path.exists("routes.json"):
                os.kill(os.getpid(), signal.SIGINT)
        try:
            medley.tune({ranks}, "routes.json", backends=["shm"], seconds=300, progress=once)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.stdout == "interrupted\n", done.stdout + done.stderr
    assert json.loads((tmp_path / "routes.json").read_text())["cells"]
    assert not left_over(tmp_path), "ranks are still running"


KILLED = """
    import os, signal, medley
    def once(done, of, now):
        if os.path.exists("routes.json"):
            {}
    medley.tune(2, "routes.json", backends=["shm"], seconds=300, progress=once)
"""


def test_the_ranks_of_a_tuning_are_outside_the_terminals_group(tmp_path):
    """Ctrl-C in a terminal reaches the whole group: ranks would get a second interrupt while they save."""
    look = """
            groups = {os.getpgid(int(pid)) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid() and works_here(pid)}
            print("alone" if groups and os.getpgrp() not in groups else groups, flush=True)
            os.killpg(os.getpgrp(), signal.SIGINT)"""
    works_here = """
    def works_here(pid):
        try:
            return os.readlink(f"/proc/{pid}/cwd") == os.getcwd()
        except OSError:
            return False
"""
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(works_here + KILLED.format(look.strip())))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=200, start_new_session=True)
    assert done.stdout.splitlines()[0] == "alone", done.stdout + done.stderr
    assert "KeyboardInterrupt" in done.stderr
    assert json.loads((tmp_path / "routes.json").read_text())["cells"]
    assert not left_over(tmp_path), "ranks are still running"


def test_the_ranks_of_a_killed_process_end_and_save(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED.format("os.kill(os.getpid(), signal.SIGKILL)")))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=200,
                          env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == -signal.SIGKILL, done.stderr
    for pid in left_over(tmp_path):
        with contextlib.suppress(ProcessLookupError):   # ended meanwhile
            end = os.pidfd_open(int(pid))
            ended = select.select([end], [], [], 100)[0]
            os.close(end)
            assert ended, f"process {pid} is still measuring"
    assert list(tmp_path.glob("medley-job-*/request.json")) and not list(tmp_path.glob("medley-job-*/answer.json")), "they measured to the end"
    assert json.loads((tmp_path / "routes.json").read_text())["cells"]


def left_over(folder):
    """Processes that work in the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(folder):
                found.append(pid)
        except OSError:
            pass   # gone, or another user's
    return found
