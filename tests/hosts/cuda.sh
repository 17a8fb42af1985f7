#!/usr/bin/env bash
# Pairs on CUDA memory on 2 hosts with 2 ranks each: the conformance suite over each pair, then random programs that mix them.
#   tests/hosts/cuda.sh BUILD
#   PAIRS="nccl+gloo nccl+ucx nccl+mpi nccl+nccl" FILTER=*of_4 SOAK=20 (seconds) TIMEOUT=120 (seconds, of each part)
# On a machine with a GPU all ranks share it (tests/gpu/mps.sh): an NCCL_HOSTID for each makes NCCL use sockets. That tests function, not
# speed. Elsewhere the mock of CUDA and NCCL stands in: MEDLEY_BACKEND_PATH=BUILD/mock_backends MEDLEY_CUDA=1.
set -uo pipefail
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/hosts/hosts.sh"
if [ "${MEDLEY_CUDA:-}" != 1 ]; then
  . "$here/tests/gpu/libraries.sh"
  use_build "$build"
  . "$here/tests/gpu/mps.sh"
  trap 'stop_mps; remove_hosts' EXIT
fi
export NCCL_SOCKET_IFNAME=eth0 MEDLEY_GLOO_INTERFACE=eth0
make_hosts 2
[ "${MEDLEY_CUDA:-}" = 1 ] && export MOCK_NCCL_FOLDER="$hosts_work"   # the mock's sockets, which all hosts reach

built() {
  local library folder
  for library in ${1//+/ }; do
    for folder in "$build/lib/medley" "${MEDLEY_BACKEND_PATH:-/none}" none; do
      ls "$folder"/libmedley_backend_"$library"*.so >/dev/null 2>&1 && break
    done
    [ "$folder" != none ] || return 1
  done
}
# Each rank names itself to NCCL. Where mpi is a half, mpirun starts the ranks.
ranks() {
  local settings=() name started='export NCCL_HOSTID=rank${MEDLEY_RANK:-$OMPI_COMM_WORLD_RANK}; [ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exec >/dev/null; exec "$@"'
  for name in MEDLEY_CUDA MEDLEY_BACKEND_PATH MOCK_NCCL_FOLDER NCCL_SOCKET_IFNAME MEDLEY_GLOO_INTERFACE LD_LIBRARY_PATH CUDA_MPS_PIPE_DIRECTORY; do
    [ -z "${!name:-}" ] || settings+=("$name=${!name}")
  done
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  local start=run_ranks
  [[ "$pair" = *+mpi ]] && start=mpirun_ranks
  $start 2 2 "${settings[@]}" -- timeout "${TIMEOUT:-120}" bash -c "$started" rank "$@"
}

failed=0 mixed=nccl
for pair in ${PAIRS:-nccl+gloo nccl+ucx nccl+mpi nccl+nccl}; do
  built "$pair" || { echo "$pair: not built here, skipped"; continue; }
  [[ "$pair" = *+mpi ]] || mixed+=,$pair   # the random programs start without mpirun
  log=$(ranks MEDLEY_TEST_BACKEND="$pair" MEDLEY_RULES="*@cuda=$pair" MEDLEY_TEST_RANKS=launched MEDLEY_TEST_REDUCED=1 MEDLEY_TEST_MEMORY=cuda \
    -- "$build/bin/conformance" --gtest_brief=1 --gtest_color=no --gtest_filter="${FILTER:-*of_4}") || failed=1
  echo "$pair: $(grep -E '^\[  (PASSED|FAILED)' <<<"$log" | head -1) $(awk '/ranks: .* cases/ { n += $3 } END { print n + 0 }' <<<"$log") cases"
  [ $failed -eq 0 ] || { head -c 4000 <<<"$log"; exit 1; }
done
pair=
if [ "${SOAK:-20}" -gt 0 ]; then
  log=$(ranks MEDLEY_BACKENDS= -- "$build/bin/medley" soak --memory cuda --backends "$mixed,gloo" --valid --programs 100000 --seconds "${SOAK:-20}" \
    --deadline 20) || failed=1
  echo "soak of $mixed: $(tail -1 <<<"$log")"
  grep -q ', 0 mismatches, 0 hangs' <<<"$log" || { failed=1; head -c 4000 <<<"$log"; }
fi
exit $failed
