#!/usr/bin/env bash
# The gain from tuning: tunes, then measures auto and every single route interleaved, and whole training steps
# over auto and over each backend.
#   bench/routes/measure.sh OUT [SECONDS] [SETTING…]
# Settings: host2 and host4 (ranks on this host), hosts (2 namespace hosts with 2 ranks each, root only),
# hosts-delay and hosts-rate (the same with 100 µs or 1 Gbit/s between them), hostsHxR (H namespace hosts with R ranks each,
# such as hosts4x2), gpu2 and gpu4 (ranks that share
# one GPU under MPS, on CUDA memory). Then bench/routes/table.py OUT prints the tables of docs/performance.md.
#   OPS=all SIZES=4:4M      fewer of them leave more samples for each
#   TUNE=SECONDS            a different time for tune than for bench
#   STEPS=1                 a table for each mix, tuned for the step under load (tune --for), instead of one of single operations
#   MIXES=only              no single routes: tunes, runs the steps and prints them
#   MEDLEY=…/bin/medley     instead of build/release's: installed, or copied from another machine (tests/gpu/pack)
set -euo pipefail
medley=${MEDLEY:+$(realpath "$MEDLEY")}
cd "$(dirname "$0")/../.."
out=$1 seconds=${2-60}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- host2 host4 hosts hosts-delay hosts-rate
mkdir -p "$out"
out=$(realpath "$out")
medley=${medley:-$PWD/build/release/bin/medley}
[ -x "$medley" ] || { echo "measure.sh: there is no command $medley; build it or name another in MEDLEY" >&2; exit 2; }
carried=$(dirname "$(dirname "$medley")")/carried   # what tests/gpu/pack added for a machine that lacks it
if [ -d "$carried" ]; then export PATH="$carried/bin:$PATH" LD_LIBRARY_PATH="$carried${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
sizes=${SIZES:-4:4M} ops=${OPS:-all}
options=()        # for tune and bench
backends=()       # for tune; none: all that work
with_auto=()      # for bench

# Tunes for each mix under load and measures auto against every single library in one run.
measure_steps() {  # NAME COMMAND-PREFIX…
  local name=$1 mix
  shift
  for mix in moe dlrm dense; do
    rm -f "$out/$name.$mix.routes.json"
    "$@" "$medley" tune "${options[@]}" "${backends[@]}" --for "$mix" --seconds "${TUNE:-$seconds}" -o "$out/$name.$mix.routes.json" \
      >"$out/$name.$mix.tune.txt"
    sed -n '/^auto/p; /^the mix\|^no mix/p; /^leave/p' "$out/$name.$mix.tune.txt"
    "$@" "$medley" bench "${options[@]}" "${with_auto[@]}" --mix "$mix" --table "$out/$name.$mix.routes.json" \
      --seconds $((seconds / 2)) --json "$out/$name.$mix.mixes.json" 2>&1 | tee "$out/$name.$mix.mixes.txt"
  done
}

measure() {  # NAME COMMAND-PREFIX…: the prefix starts the ranks
  if [ -n "${STEPS-}" ]; then
    measure_steps "$@"
    return
  fi
  local name=$1
  shift
  rm -f "$out/$name.routes.json"
  "$@" "$medley" tune "${options[@]}" "${backends[@]}" --seconds "${TUNE:-$seconds}" --op "$ops" --sizes "$sizes" -o "$out/$name.routes.json" \
    >"$out/$name.tune.txt"
  if [ "${MIXES-}" != only ]; then
    "$@" "$medley" bench "${options[@]}" "${with_auto[@]}" --op "$ops" --sizes "$sizes" --algorithms all \
      --table "$out/$name.routes.json" --seconds "$seconds" --csv "$out/$name.csv" >/dev/null
  fi
  "$@" "$medley" bench "${options[@]}" "${with_auto[@]}" --mix all --table "$out/$name.routes.json" \
    --seconds $((seconds / 2)) --json "$out/$name.mixes.json" >"$out/$name.mixes.txt"
  if [ "${MIXES-}" = only ]; then cat "$out/$name.mixes.txt"; fi
}

# Those of nccl, shm and mpi that work here, separated by commas.
gpu_backends() {
  "$medley" info --json - | python3 -c 'import json, sys
works = {backend["name"] for backend in json.load(sys.stdin)["backends"] if backend["available"]}
print(",".join(name for name in ("nccl", "shm", "mpi") if name in works))'
}

for setting in "$@"; do
  echo "== $setting"
  case $setting in
    host[0-9]*) measure "$setting" "$medley" run --no-prefix --backends shm,mpi,gloo,ucx -n "${setting#host}" -- ;;
    hosts*) (
      . tests/hosts/hosts.sh
      count=2 each=2
      if [[ $setting =~ ^hosts([0-9]+)x([0-9]+)$ ]]; then count=${BASH_REMATCH[1]} each=${BASH_REMATCH[2]}; fi
      make_hosts "$count"
      for name in "${host_name[@]}"; do
        case $setting in
          hosts-delay) tc -n "$name" qdisc add dev eth0 root netem delay 100us || { echo "measure.sh: this kernel has no netem" >&2; exit 2; } ;;
          hosts-rate) tc -n "$name" qdisc add dev eth0 root tbf rate 1gbit burst 128k latency 50ms ;;
        esac
      done
      measure "$setting" mpirun_ranks "$count" "$each" --
    ) ;;
    gpu*[0-9]) (
      . tests/gpu/libraries.sh
      use_build "$(dirname "$(dirname "$medley")")"
      . tests/gpu/mps.sh
      list=$(gpu_backends)
      echo "measure.sh: over $list"
      options=(--memory cuda) backends=(--backends "$list") with_auto=(--backends "$list,auto")
      measure "$setting" "$medley" run --no-prefix --backends "$list" -n "${setting#gpu}" --
    ) ;;
    *) echo "measure.sh: there is no setting $setting" >&2; exit 2 ;;
  esac
done
