#!/usr/bin/env bash
# medley tune --export openmpi measures every collective and writes rules that Open MPI reads and follows.
#   sweep_test.sh MEDLEY ALL_TO_ALL
set -euo pipefail
medley=$1 all_to_all=$2
command -v mpirun.openmpi >/dev/null || { echo "there is no mpirun.openmpi"; exit 77; }
export MEDLEY_MPIRUN=mpirun.openmpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$medley" tune -n 3 --export openmpi --seconds 1 --sizes 1K:4K -o "$work/rules.conf" >"$work/table"
for collective in allgather allreduce alltoall bcast gather reduce reduce_scatter_block scatter; do
  grep -q "^[0-9]* # $collective\$" "$work/rules.conf" || { echo "no rules for $collective:"; cat "$work/rules.conf"; exit 1; }
  grep -q "^$collective " "$work/table" || { echo "no row for $collective:"; cat "$work/table"; exit 1; }
done
under() {  # RULES: an all_to_all of three ranks with these rules
  mpirun.openmpi -n 3 --oversubscribe --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename "$1" "$all_to_all" >"$work/log" 2>&1
}
under "$work/rules.conf" || { echo "Open MPI fails with the rules:"; cat "$work/rules.conf" "$work/log"; exit 1; }
# The same file with an algorithm for two ranks only: if Open MPI reads the file as it was meant, the call now fails.
awk '/# alltoall$/ { inside = 1 } inside && / 0 0 # / { $2 = 5; inside = 0 } { print }' "$work/rules.conf" >"$work/forced.conf"
! cmp -s "$work/rules.conf" "$work/forced.conf" || { echo "no rule to change:"; cat "$work/rules.conf"; exit 1; }
! under "$work/forced.conf" || { echo "Open MPI does not follow the rules:"; cat "$work/forced.conf"; exit 1; }
