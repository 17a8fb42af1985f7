#!/usr/bin/env bash
# medley trace, reconcile and replay as a user calls them: replays reconcile to zero differences, bad input is
# rejected.
set -euo pipefail
medley=$1 schedules=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
refuses() {  # TEXT COMMAND…: exit 2 and one line that contains TEXT
  local text=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 2 ] || fail "'$*' ended with $status, not 2: $(cat "$work/err")"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "'$*' said more than one line: $(cat "$work/err")"
  grep -qF -- "$text" "$work/err" || fail "'$*' did not say '$text': $(cat "$work/err")"
}

replay() {  # NAME RANKS SCHEDULE OPTIONS…
  local name=$1 ranks=$2 schedule=$3
  shift 3
  "$medley" replay "$schedule" -n "$ranks" --backends shm --steps 2 --tflops 0 --trace "$work/$name" --json "$work/$name.json" "$@" >/dev/null ||
    fail "replay of $name on $ranks ranks"
  grep -q '"step_us"' "$work/$name.json" || fail "no step_us of $name"
}

gpt=h=256,a=4,layers=4,vocab=1000,seq=64
moe=$gpt,experts=4,top_k=2
for ranks in 2 4; do
  "$medley" plan --model $gpt --layout dp=2,tp=$((ranks / 2)),zero=1 --framework megatron --global-batch 4 --schedule "$work/gpt$ranks.json" >/dev/null
  replay gpt-$ranks $ranks "$work/gpt$ranks.json"
  "$medley" reconcile "$work/gpt-$ranks" --model $gpt --layout dp=2,tp=$((ranks / 2)),zero=1 --framework megatron --global-batch 4 --assert ||
    fail "dense GPT on $ranks ranks"
  "$medley" plan --model $moe --layout dp=$ranks,ep=2 --framework deepspeed --schedule "$work/moe$ranks.json" >/dev/null
  replay moe-$ranks $ranks "$work/moe$ranks.json"
  "$medley" reconcile "$work/moe-$ranks" --model $moe --layout dp=$ranks,ep=2 --framework deepspeed --assert || fail "MoE on $ranks ranks"
  replay dlrm-$ranks $ranks "$schedules/dlrm.json"
  "$medley" reconcile "$work/dlrm-$ranks" --schedule "$schedules/dlrm.json" --assert || fail "DLRM on $ranks ranks"
done

# a pipeline: every rank's schedule differs
"$medley" plan --model $gpt --layout pp=2 --framework megatron --global-batch 4 --schedule "$work/pp.json" >/dev/null
replay pp 2 "$work/pp.json"
"$medley" reconcile "$work/pp" --model $gpt --layout pp=2 --framework megatron --global-batch 4 --assert || fail "pipeline"

# a recorded step as a schedule: what is replayed from it is what was recorded, messages and groups included
for name in gpt-4 moe-2 dlrm-2 pp; do
  "$medley" trace "$work/$name" --schedule "$work/$name-traced.json" >/dev/null || fail "trace --schedule of $name"
  "$medley" reconcile "$work/$name" --schedule "$work/$name-traced.json" --assert || fail "$name is not the step that was recorded"
done
replay again 4 "$work/gpt-4-traced.json"
"$medley" reconcile "$work/again" --model $gpt --layout dp=2,tp=2,zero=1 --framework megatron --global-batch 4 --ignore phase --assert ||
  fail "a replay of a recorded step is not what was planned"

# scaled down, with the scale omitted
replay small 2 "$schedules/dlrm.json" --scale 0.01
"$medley" reconcile "$work/small" --schedule "$schedules/dlrm.json" --scale 0.01 --assert || fail "scaled"
status=0
"$medley" reconcile "$work/small" --schedule "$schedules/dlrm.json" --assert >/dev/null || status=$?
[ $status = 1 ] || fail "a difference must end with 1 under --assert, not $status"
"$medley" reconcile "$work/small" --schedule "$schedules/dlrm.json" >/dev/null || fail "without --assert differences are no failure"

# a wrong run is neither accepted nor explained: the schedule is damaged, replayed, and compared with the plan
"$medley" plan --model $gpt --layout dp=2,tp=2,zero=1 --framework megatron --global-batch 4 --rank all --schedule "$work/whole.json" >/dev/null
damaged() {  # NAME PYTHON: code that changes `comms`, the operations of a rank, among `entries`
  python3 - "$work/whole.json" "$work/$1.json" "$2" <<'END'
import json, sys
step = json.load(open(sys.argv[1]))
for rank in step["ranks"]:
    exec(sys.argv[3], {"entries": rank["entries"], "comms": [e for e in rank["entries"] if e["kind"] == "comm"]})
json.dump(step, open(sys.argv[2], "w"))
END
  replay "$1" 4 "$work/$1.json"
  for strictness in --assert --allow-explained; do
    status=0
    "$medley" reconcile "$work/$1" --schedule "$work/whole.json" $strictness >"$work/out" || status=$?
    [ $status = 1 ] || fail "$strictness accepts a run with $1 against its schedule: $(cat "$work/out")"
    status=0
    "$medley" reconcile "$work/$1" --model $gpt --layout dp=2,tp=2,zero=1 --framework megatron --global-batch 4 $strictness >"$work/out" || status=$?
    [ $status = 1 ] || fail "$strictness accepts a run with $1 against its plan: $(cat "$work/out")"
  done
}
damaged max-for-sum 'for e in comms:
    if e.get("reduce") == "sum": e["reduce"] = "max"'
damaged largest-doubled 'most = max(e["bytes"] for e in comms)
for e in comms:
    if e["bytes"] == most: e["bytes"] *= 2'
damaged one-twice 'entries.append(dict(comms[0]))'
damaged blocking 'for e in comms:
    e["token"] = 0 if e.get("token") else 1'
rm "$work/gpt-4/rank-0003.trace"
status=0
"$medley" reconcile "$work/gpt-4" --schedule "$work/whole.json" --allow-explained >"$work/out" || status=$?
[ $status = 1 ] && grep -q "missing rank: there is no trace of 1 of 4: rank 3" "$work/out" || fail "a rank without a trace: $(cat "$work/out")"
"$medley" reconcile "$work/gpt-4" --schedule "$work/whole.json" --ignore ranks --assert >/dev/null || fail "--ignore ranks"
replay gpt-4 4 "$work/gpt4.json"

# a route table of exactly what a step sends: auto follows it and predicts a step's time from it
whole() {  # TABLE SCHEDULE
  python3 - "$@" <<'END'
import json, sys
table, step = (json.load(open(path)) for path in sys.argv[1:])
sent = {(e["op"], e["bytes"]) for e in step["entries"] if e["kind"] == "comm"}
measured = {(c["op"], c["bytes"]) for c in table["cells"]}
assert {op for op, _ in measured} <= {op for op, _ in sent}, "more than the step sends"
sys.exit(0 if sent <= measured else 1)
END
}
for _ in $(seq 60); do  # a busy machine takes longer; tune resumes where it stopped
  "$medley" tune -n 2 --backends shm --seconds 2 --for "$work/gpt2.json" -o "$work/table.json" >/dev/null 2>&1 || fail "tune --for"
  whole "$work/table.json" "$work/gpt2.json" && break
done
whole "$work/table.json" "$work/gpt2.json" || fail "tune --for measured something else: $(cat "$work/table.json")"
refuses "is no schedule" "$medley" tune -n 2 --for "$work/table.json" -o "$work/other.json"
replay predicted 2 "$work/gpt2.json" --table "$work/table.json"
grep -A1 '"predicted_us"' "$work/predicted.json" | grep -q '"shm": [0-9]' || fail "no predicted_us: $(cat "$work/predicted.json")"
refuses "no-such-table.json" "$medley" replay "$work/gpt2.json" -n 2 --table "$work/no-such-table.json"

# times beside a machine's links and beside the table: every operation has both times, and the causes add up to what was exposed
timed() {  # NAME OPTIONS…
  local name=$1
  shift
  "$medley" reconcile "$work/gpt-2" --schedule "$work/gpt2.json" --assert --json "$work/$name.json" "$@" >"$work/screen" || fail "reconcile $*"
  grep -q "expected µs" "$work/screen" && grep -q "^exposed: " "$work/screen" || fail "reconcile $* shows no times: $(cat "$work/screen")"
  python3 - "$work/$name.json" "$work/gpt2.json" <<'PY' || fail "times in the JSON of reconcile $*"
import json, math, sys
report, step = (json.load(open(path)) for path in sys.argv[1:])
rows, found, summary = report["time"], report["exposed"], report["time_summary"]
planned = [e for e in step["entries"] if e["kind"] == "comm" and len(step["groups"][e["group"]]) > 1]
assert sum(row["count"] for row in rows) == len(planned), (sum(row["count"] for row in rows), len(planned))
assert {(r["op"], r["bytes"]) for r in rows} == {(e["op"], e["bytes"]) for e in planned}
for row in rows:
    assert row["expected_us"] > 0 and row["observed_us"] > 0 and row["slowest_us"] >= row["observed_us"], row
    assert math.isclose(sum(row["causes"].values()), row["exposed_us"], abs_tol=1e-6), row
assert summary["ranks"] == 2 and summary["steps"] == 2 and summary["step_us"] >= summary["exposed_us"] > 0, summary
assert math.isclose(sum(row["exposed_us"] for row in rows), summary["exposed_us"], rel_tol=1e-6)
assert found and all(set(f) == {"cause", "us", "exposed", "sentence"} for f in found)
assert [f["us"] for f in found] == sorted((f["us"] for f in found), reverse=True), "worst first"
PY
}
timed by-machine --machine dgx-h100
grep -q '"expected_by": ".*dgx-h100' "$work/by-machine.json" || fail "whose times: $(grep expected_by "$work/by-machine.json")"
timed by-table --table "$work/table.json"
grep -q '"expected_by": ".*table.json' "$work/by-table.json" || fail "whose times: $(grep expected_by "$work/by-table.json")"
"$medley" reconcile "$work/gpt-2" --schedule "$work/gpt2.json" --json - | python3 -c 'import json, sys; assert "time" not in json.load(sys.stdin)' ||
  fail "times that nobody asked for"
refuses "no-such-machine" "$medley" reconcile "$work/gpt-2" --schedule "$work/gpt2.json" --machine no-such-machine
refuses "no-such-table.json" "$medley" reconcile "$work/gpt-2" --schedule "$work/gpt2.json" --table "$work/no-such-table.json"
refuses "gpt2.json" "$medley" reconcile "$work/gpt-2" --schedule "$work/gpt2.json" --table "$work/gpt2.json"

# a step predicted from single operations, which belong to no step; also a pipeline, whose ranks communicate
# in pairs
"$medley" plan --model $gpt --layout dp=2,pp=2 --framework megatron --global-batch 8 --schedule "$work/pp4.json" >/dev/null
for calibrated in "moe4 4 $work/moe4.json" "pp4 4 $work/pp4.json" "dlrm2 2 $schedules/dlrm.json"; do
  read -r name ranks schedule <<<"$calibrated"
  replay "$name-parts" "$ranks" "$schedule" --calibrate
  grep -A1 '"calibrated_us"' "$work/$name-parts.json" | grep -q '"shm": [0-9]' || fail "no calibrated_us: $(cat "$work/$name-parts.json")"
  "$medley" reconcile "$work/$name-parts" --schedule "$schedule" --assert >/dev/null || fail "$name with its parts before each step"
done

# the summary and its exports
"$medley" trace "$work/gpt-4" --json - | python3 -c '
import json, sys
t = json.load(sys.stdin)
assert t["world"] == 4 and t["steps"] == 2 and t["steps_found_by"] == "scope", t["steps"]
for field in "op group group_size bytes count phase exposed why".split():
    assert all(field in row for row in t["rows"]), field
for total in t["totals"].values():
    assert {"bytes", "wire_bytes", "count"} <= set(total)
assert t["problems"] == [] and t["skew"]
' || fail "trace --json"
"$medley" trace "$work/gpt-4" --csv "$work/t.csv" --perfetto "$work/t.json" >"$work/screen"
grep -q "4 of 4 ranks" "$work/screen" || fail "screen: $(head -3 "$work/screen")"
python3 - "$work/t.csv" "$work/t.json" "$work/gpt-4" <<'PY' || fail "exports"
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
events = [e for e in json.load(open(sys.argv[2]))["traceEvents"] if e["ph"] == "X" and e["cat"] == "comm"]
assert len(rows) == len(events) > 100, (len(rows), len(events))
assert sum(int(r["bytes"]) for r in rows) == sum(e["args"]["bytes"] for e in events)
PY
"$medley" trace "$work/gpt-4" --chakra "$work/chakra" >/dev/null || fail "trace --chakra"
python3 - "$work/t.csv" "$work/chakra" <<'PY' || fail "chakra"
import csv, json, os, sys
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]; at += 1
        value |= (byte & 127) << shift; shift += 7
        if byte < 128: return value, at
def fields(data):   # of a protobuf message: number and value
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2: value, at = data[at:at + value], at + value
        yield key >> 3, value
def messages(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        size, at = varint(data, at)
        yield list(fields(data[at:at + size])); at += size
rows = list(csv.DictReader(open(sys.argv[1])))
groups = json.load(open(os.path.join(sys.argv[2], "comm_group.json")))
for rank in range(4):
    metadata, *nodes = messages(os.path.join(sys.argv[2], f"medley.{rank}.et"))
    assert metadata == [(1, b"0.0.4")], metadata
    seen, sizes, computed = set(), [], 0
    for node in nodes:
        one = dict(node)
        for number, value in node:
            while number == 5 and value:   # what it depends on came before it
                dependency, at = varint(value, 0)
                assert dependency in seen, one
                value = value[at:]
        seen.add(one[1])
        attributes = {dict(fields(v))[1]: list(fields(v))[1][1] for n, v in node if n == 10}
        if one[3] == 4:
            computed += 1
            continue
        assert attributes[b"pg_name"].decode() in groups
        sizes.append(attributes[b"comm_size"])
    own = [r for r in rows if int(r["rank"]) == rank]
    given = [int(r["bytes"]) // (int(r["group_size"]) if r["op"] in ("all_gather", "all_gatherv", "gather") else 1) for r in own]
    assert sorted(sizes) == sorted(given) and computed > 0, (len(sizes), len(given), computed)
PY
"$medley" trace "$work/gpt-4/rank-0000.trace" >/dev/null || fail "one file"

# cut off and damaged files
cp "$work/gpt-4/rank-0000.trace" "$work/cut.trace"
truncate -s -1000 "$work/cut.trace"
"$medley" trace "$work/cut.trace" | grep -q "cut off" || fail "a file that was cut off"
truncate -s 100 "$work/cut.trace"
refuses "is cut off in its header" "$medley" trace "$work/cut.trace"
echo nonsense >"$work/nonsense"
refuses "is neither a record file" "$medley" trace "$work/nonsense"
refuses "no such file or folder" "$medley" trace "$work/absent"
mkdir "$work/empty"
refuses "there is no trace in it" "$medley" trace "$work/empty"
refuses "--layout has 8 ranks, the trace is of 4" "$medley" reconcile "$work/gpt-4" --model $gpt --layout dp=8
refuses "run it with -n 2, not 3" "$medley" replay "$work/gpt2.json" -n 3
refuses "is no schedule" "$medley" replay "$work/t.json" -n 2
refuses "is not JSON" "$medley" replay "$work/nonsense" -n 2
deep=$(head -c 200000 /dev/zero | tr '\0' '[')
echo "{\"schema\": \"medley.schedule/1\", \"ranks\": [], \"world\": $deep${deep//\[/]}}" >"$work/deep.json"
refuses "nests more than" "$medley" replay "$work/deep.json" -n 2
echo "trace, reconcile and replay hold"
