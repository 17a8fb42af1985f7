#!/usr/bin/env bash
# What the tuner is worth: tunes, then measures auto beside every single route by turns, and whole steps of training over
# auto and over each backend.
#   bench/routes/measure.sh OUT [SECONDS] [SETTING…]
# Settings: host2 and host4 (ranks on this host), hosts (2 namespace hosts with 2 ranks each, root only), hosts-delay and
# hosts-rate (the same with netem between them). Then bench/routes/table.py OUT prints the tables of docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1 seconds=${2-60}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- host2 host4 hosts hosts-delay hosts-rate
medley=$PWD/build/release/bin/medley
mkdir -p "$out"
out=$(realpath "$out")
sizes=4:4M

measure() {  # NAME COMMAND-PREFIX…: the prefix starts the ranks
  local name=$1
  shift
  rm -f "$out/$name.routes.json"
  "$@" "$medley" tune --seconds "$seconds" --sizes $sizes -o "$out/$name.routes.json" >"$out/$name.tune.txt"
  "$@" "$medley" bench --op all --sizes $sizes --algorithms all --table "$out/$name.routes.json" --seconds "$seconds" \
    --csv "$out/$name.csv" >/dev/null
  "$@" "$medley" bench --mix all --table "$out/$name.routes.json" --seconds $((seconds / 2)) --json "$out/$name.mixes.json" \
    >"$out/$name.mixes.txt"
}

for setting in "$@"; do
  echo "== $setting"
  case $setting in
    host*[0-9]) measure "$setting" "$medley" run --no-prefix --backends shm,mpi,gloo,ucx -n "${setting#host}" -- ;;
    hosts*) (
      . tests/hosts/hosts.sh
      make_hosts 2
      for name in "${host_name[@]}"; do
        case $setting in
          hosts-delay) tc -n "$name" qdisc add dev eth0 root netem delay 100us ;;
          hosts-rate) tc -n "$name" qdisc add dev eth0 root netem rate 1gbit ;;
        esac
      done
      measure "$setting" mpirun_ranks 2 2 --
    ) ;;
    *) echo "measure.sh: there is no setting $setting" >&2; exit 2 ;;
  esac
done
