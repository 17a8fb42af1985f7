#!/usr/bin/env bash
# medley watch on a running job: it names a stopped or killed rank, but none in a healthy job, and scripts get
# exit codes.
set -euo pipefail
medley=$1 schedules=$2
work=$(mktemp -d)
job=
cleanup() { [ -z "$job" ] || kill -KILL -- "-$job" 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
pid_of() { python3 -c 'import struct, sys; print(struct.unpack_from("<q", open(sys.argv[1], "rb").read(96), 88)[0])' "$1"; }

start() {  # NAME: a job that runs until killed, in its own process group
  set -m
  "$medley" replay "$schedules/dlrm.json" -n 2 --backends shm --steps 100000 --scale 0.01 --tflops 0 --trace "$work/$1" >"$work/$1.log" 2>&1 &
  job=$!
  set +m
  for _ in $(seq 600); do
    [ -s "$work/$1/rank-0000.trace" ] && [ -s "$work/$1/rank-0001.trace" ] && [ "$("$medley" watch "$work/$1" --once --json - 2>/dev/null |
      python3 -c 'import json, sys; print(json.load(sys.stdin)["operations"] > 100)' 2>/dev/null)" = True ] && return
    kill -0 "$job" 2>/dev/null || fail "the job ended: $(cat "$work/$1.log")"
    read -rt 0.1 <> <(:) || true
  done
  fail "the job records nothing: $(cat "$work/$1.log")"
}
stop() { kill -KILL -- "-$job" 2>/dev/null || true; wait "$job" 2>/dev/null || true; job=; }

named() {  # KIND FOLDER: blames rank 1 and no other
  local status=0
  timeout 60 "$medley" watch "$2" --until-problem --every 0.1 --json "$work/verdicts.json" >"$work/screen" || status=$?
  [ $status = 1 ] || fail "watch ended with $status, not 1: $(cat "$work/screen")"
  python3 - "$work/verdicts.json" "$1" <<'PY' || fail "$1: $(cat "$work/screen" "$work/verdicts.json")"
import json, sys
verdicts = json.load(open(sys.argv[1]))["verdicts"]
assert verdicts[0]["kind"] == sys.argv[2] and verdicts[0]["ranks"] == [1], verdicts
PY
}

start stopped
kill -STOP "$(pid_of "$work/stopped/rank-0001.trace")"
named stopped "$work/stopped"
stop
# The endpoint serves the verdicts on loopback; a port that is taken is an error with a place.
start served
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$medley" watch "$work/served" --prometheus "$port" --every 0.1 >/dev/null 2>"$work/served.err" &
watcher=$!
python3 - "$port" "$watcher" <<'PY' || fail "the endpoint: $(cat "$work/served.err")"
import os, sys, urllib.error, urllib.request
for attempt in range(100000):
    os.kill(int(sys.argv[2]), 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=30) as reply:
            text, kind = reply.read().decode(), reply.headers["Content-Type"]
        if "medley_ranks 2\n" in text: break
    except (urllib.error.URLError, ConnectionError):
        pass
assert kind.startswith("text/plain; version=0.0.4"), kind
metrics = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
assert float(metrics["medley_operations_total"]) > 100, text
PY
status=0
"$medley" watch "$work/served" --prometheus "$port" --once 2>"$work/err" || status=$?
[ $status = 2 ] && grep -q -- "--prometheus $port: Address already in use" "$work/err" || fail "a taken port: $status $(cat "$work/err")"
kill "$watcher"
wait "$watcher" 2>/dev/null || true
stop
# A slow look may call a rank late: only the kinds asked for end the watch.
start kinds
kill -STOP "$(pid_of "$work/kinds/rank-0001.trace")"
status=0
timeout 60 "$medley" watch "$work/kinds" --until-problem --kinds gone,mismatch --every 0.1 --for 1 >"$work/screen" || status=$?
[ $status = 0 ] && grep -q stopped "$work/screen" || fail "another kind: $status $(cat "$work/screen")"
timeout 60 "$medley" watch "$work/kinds" --until-problem --kinds gone,stopped --every 0.1 >"$work/screen" || status=$?
[ $status = 1 ] || fail "the kind asked for: $status $(cat "$work/screen")"
status=0
"$medley" watch "$work/kinds" --kinds gone,asleep 2>"$work/err" || status=$?
[ $status = 2 ] && grep -q "there is no verdict 'asleep'; there are gone, stopped" "$work/err" || fail "an unknown kind: $status $(cat "$work/err")"
stop
start killed
kill -KILL "$(pid_of "$work/killed/rank-0001.trace")"
named gone "$work/killed"
stop
# a job that ended in order is not one whose ranks are gone
"$medley" replay "$schedules/dlrm.json" -n 2 --backends shm --steps 1 --scale 0.01 --tflops 0 --trace "$work/ended" >/dev/null
"$medley" watch "$work/ended" --once --json - >"$work/ended.json" || true
python3 -c 'import json, sys; assert not any(v["kind"] in ("gone", "stuck", "failed") for v in json.load(sys.stdin)["verdicts"])' <"$work/ended.json" ||
  fail "a job that ended: $(cat "$work/ended.json")"
status=0
"$medley" watch "$work/absent" --once 2>"$work/err" || status=$?
[ $status = 2 ] && grep -q "no such file or folder" "$work/err" || fail "an absent folder: $status $(cat "$work/err")"
# Without a folder: the one job that runs, among those that ended; of several that ended, the newest are named.
unset TMPDIR
export MEDLEY_FLIGHT=$work/flight
mkdir -p "$work/flight"
for old in 1 2 3 4 5; do cp -r "$work/ended" "$work/flight/old-$old"; done
status=0
"$medley" watch --once 2>"$work/err" || status=$?
[ $status = 2 ] && grep -q "holds 5 jobs, none of which is running; name one of them, newest first: old-[1-5], old-[1-5], old-[1-5], …" "$work/err" ||
  fail "five ended jobs: $status $(cat "$work/err")"
start flight/running
kill -STOP "$(pid_of "$work/flight/running/rank-0001.trace")"
status=0
timeout 60 "$medley" watch --until-problem --every 0.1 >"$work/screen" || status=$?
[ $status = 1 ] && grep -q "rank 1" "$work/screen" || fail "the running job: $status $(cat "$work/screen")"
stop
echo "watch names who is stopped and who is gone"
