"""medley.plan, medley.shape and their like: the command's results as typed objects."""

import json
import subprocess
import sys
import types

import medley
import pytest
from medley._command import program

ASKED = [
    (lambda: medley.plan("pythia-70m", "dp=2,tp=2", framework="megatron", machine="dgx-a100", seq=512),
     "plan --model pythia-70m --layout dp=2,tp=2 --framework megatron --machine dgx-a100 --seq 512"),
    (lambda: medley.plan_sweep("pythia-70m", "dp=2", machine="dgx-a100", sweep={"seq": "256:1024", "tp": [1, 2, 3]}),
     "plan --model pythia-70m --layout dp=2 --machine dgx-a100 --sweep seq=256:1024 --sweep tp=1,2,3"),
    (lambda: medley.plan("pythia-70m", "dp=2", framework="ddp", machine="dgx-a100", tokens=300e9),
     "plan --model pythia-70m --layout dp=2 --framework ddp --machine dgx-a100 --tokens 300B"),
    (lambda: medley.plan_search("llama-2-7b", 8, "dgx-a100", global_batch=16, layout="zero=1", framework="megatron", most=3,
                                sweep={"tp": [2, 4], "cp": "1:2"}),
     "plan search --model llama-2-7b --gpus 8 --machine dgx-a100 --global-batch 16 --layout zero=1 --framework megatron --top 3"
     " --sweep tp=2,4 --sweep cp=1:2"),
    (lambda: medley.shape_compare(["gpt2-xl", "pythia-2.8b"], ["h200-sxm"], tp=2),
     "shape compare --model gpt2-xl,pythia-2.8b --gpu h200-sxm --tp 2"),
    (lambda: medley.shape("gpt2-xl", "h200-sxm", micro_batch=4, recompute="full"),
     "shape --model gpt2-xl --gpu h200-sxm --micro-batch 4 --recompute full"),
    (lambda: medley.shape_search("gpt2-xl", "h200-sxm", params=0.01, depth=0.05, hidden_step=128),
     "shape search --model gpt2-xl --gpu h200-sxm --params 1% --depth 5% --hidden-step 128"),
    (lambda: medley.lint("gpt2-xl", "h200-sxm", allow=0.02), "shape lint gpt2-xl --gpu h200-sxm --allow 2%"),
]


def command():
    if not program().exists():
        pytest.skip("the command is not built")
    return program()


@pytest.mark.parametrize("ask, arguments", ASKED)
def test_a_function_gives_what_the_command_writes(ask, arguments):
    said = subprocess.run([command(), *arguments.split(), "--json", "-"], capture_output=True, text=True, timeout=60)
    expected = json.loads(said.stdout)
    result = ask()
    found = dict(result.to_dict())
    for timed in (expected, found):
        timed.pop("seconds", None)
    assert found == expected
    for name in expected:
        assert hasattr(result, name), f"{type(result).__name__} lacks {name}"
    rows, typed = expected[result.ROWS], getattr(result, result.ROWS)
    assert len(rows) == len(typed)
    for row, object in zip(rows, typed):
        fields = {name.rstrip("_"): value for name, value in vars(object).items() if value is not None}
        fields.update(fields.pop("values", {}))
        assert fields == {name: value for name, value in row.items() if value is not None}


def test_rows_are_typed():
    plan = medley.plan("pythia-70m", "dp=2", framework="ddp")
    assert plan.rows and plan.rows[0].group == "dp" and plan.rows[0].wire_bytes > 0
    assert plan.machine is None and plan.breakdown is None
    with pytest.raises(AttributeError):
        plan.rank = 3


def test_errors_are_medleys_own():
    with pytest.raises(medley.Invalid, match="tp 3"):
        medley.plan("pythia-70m", "tp=3")
    with pytest.raises(medley.Invalid, match="unknown GPU"):
        medley.shape("gpt2-xl", "abacus")
    with pytest.raises(TypeError):
        medley.plan("pythia-70m", colour=1)


def test_tables_for_notebooks(monkeypatch):
    lint = medley.lint("gpt2-xl", "h200-sxm", allow=0.02)
    table = lint._repr_html_()
    assert table.count("<tr>") == 1 + len(lint.findings) and "vocab_size" in table
    assert "no findings" in medley.lint("gpt2-xl", "h200-sxm", allow=0.9)._repr_html_()
    assert '<b>Lint</b> file gpt2-xl, gpu h200-sxm' in table
    grid = medley.plan_sweep("pythia-70m", "dp=2", sweep={"seq": range(64, 364)})._repr_html_()
    assert grid.count("<tr>") == 1 + 200 and "100 more rows" in grid
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=list))
    assert lint.to_pandas()[0]["key"] == lint.findings[0].key
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        lint.to_pandas()


def test_a_table_has_a_column_for_every_number():
    table = medley.plan_sweep("pythia-70m", "dp=2", sweep={"tp": [1, 3]})._repr_html_()
    for column in ("tp", "memory.total", "totals.dp.wire_bytes", "refused"):
        assert f"<th>{column}</th>" in table
    assert "histogram" not in table


def test_importing_medley_does_not_load_the_analysis():
    subprocess.run([sys.executable, "-c", "import sys, medley; assert not {'medley._analysis', 'medley.results'} & set(sys.modules)"], check=True)


@pytest.mark.parametrize("call", [
    lambda progress: medley.plan_sweep("pythia-70m", "dp=2", sweep={"seq": range(64, 512)}, progress=progress),
    lambda progress: medley.shape_search("gpt2-xl", "h200-sxm", progress=progress),
])
def test_progress_is_told_and_can_end_long_work(call):
    reported = []
    call(lambda done, of, now: reported.append((done, of)))
    assert reported and all(0 < done <= of for done, of in reported)

    class Enough(Exception):
        pass

    def refuse(done, of, now):
        raise Enough

    with pytest.raises(Enough):
        call(refuse)
