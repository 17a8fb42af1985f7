#!/usr/bin/env bash
# Steps of a dense GPT, a mixture of experts and a DLRM replayed over each backend and over auto, compared
# with predictions from their single operations and a route table.
#   bench/replay/measure.sh OUT [SECONDS] [SETTING…]
# Settings: host2 and host4 (ranks on this host), hosts (2 namespace hosts with 2 ranks each, root only).
# SECONDS: for the table of each step; trying the routes of 64 MiB takes a minute. TABLES (environment): a
# folder with tables that bench/routes/measure.sh made, to use instead. ROUNDS (environment): steps over each
# backend, four times as many of the short DLRM step. Then bench/replay/table.py OUT prints the tables of
# docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1 seconds=${2-60} rounds=${ROUNDS-12}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- host2 host4 hosts
medley=$PWD/build/release/bin/medley
mkdir -p "$out"
out=$(realpath "$out")

plan() {  # RANKS
  "$medley" plan --model pythia-70m --layout "dp=$1" --framework ddp --seq 512 --schedule "$out/gpt$1.json" >/dev/null
  "$medley" plan --model h=512,a=8,layers=6,vocab=50304,seq=512,experts=8,top_k=2 --layout "dp=$1,ep=2" --framework deepspeed \
    --schedule "$out/moe$1.json" >/dev/null
  cp examples/schedules/dlrm.json "$out/dlrm$1.json"
}

measure() {  # NAME RANKS COMMAND-PREFIX…: the prefix starts the ranks
  local name=$1 ranks=$2 table step steps
  shift 2
  plan "$ranks"
  table=$out/$name.routes.json
  if [ -n "${TABLES-}" ]; then
    cp "$TABLES/$name.routes.json" "$table"
  else
    rm -f "$table"
    for step in gpt moe dlrm; do
      "$@" "$medley" tune --for "$out/$step$ranks.json" --seconds "$seconds" -o "$table" >"$out/$name.tune.txt"
    done
  fi
  for step in gpt moe dlrm; do
    [ $step = dlrm ] && steps=$((rounds * 4)) || steps=$rounds
    "$@" "$medley" replay "$out/$step$ranks.json" --table "$table" --calibrate \
      --steps "$steps" --json "$out/$name.$step.json"
  done
}

for setting in "$@"; do
  echo "== $setting"
  case $setting in
    host*[0-9]) measure "$setting" "${setting#host}" "$medley" run --no-prefix --backends shm,mpi,gloo,ucx -n "${setting#host}" -- ;;
    hosts) (
      . tests/hosts/hosts.sh
      make_hosts 2
      measure "$setting" 4 mpirun_ranks 2 2 --
    ) ;;
    *) echo "measure.sh: there is no setting $setting" >&2; exit 2 ;;
  esac
done
