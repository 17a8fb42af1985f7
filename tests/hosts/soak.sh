#!/usr/bin/env bash
# Random programs over pairs such as shm+gloo on 2 hosts with 2 ranks each: soak.sh MEDLEY SEED PROGRAMS BACKEND…
# Those of BACKEND that are not available here are left out.
set -uo pipefail
medley=$1 seed=$2 programs=$3
shift 3
. "$(dirname "$0")/hosts.sh"
list=
known=$("$medley" info)
for backend in "$@"; do
  grep -q "^$backend  *yes" <<<"$known" && list+=${list:+,}$backend,shm+$backend
done
[ -n "$list" ] || skip "none of $* is available here"
make_hosts 2
log=$(mpirun_ranks 2 2 -- timeout 250 "$medley" soak --valid --seed "$seed" --programs "$programs" --backends "$list" --deadline 30 2>&1)
tail -n 1 <<<"$log"
grep -q "^$programs programs, 0 mismatches, 0 hangs" <<<"$log" || { head -c 4000 <<<"$log"; exit 1; }
