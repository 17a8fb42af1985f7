#!/usr/bin/env bash
# The conformance suite on 2 hosts with 2 ranks each: conformance.sh BUILD BACKEND [FILTER]
set -uo pipefail
build=$1 backend=$2 filter=${3-*}
ls "$build"/lib/medley/libmedley_backend_"$backend"*.so >/dev/null 2>&1 ||
  { echo "skipped: this build has no $backend backend"; exit 77; }
. "$(dirname "$0")/hosts.sh"
make_hosts 2

settings=(MEDLEY_TEST_BACKEND="$backend" MEDLEY_TEST_RANKS=launched MEDLEY_TEST_REDUCED=1
          MEDLEY_TEST_FULL="${MEDLEY_TEST_FULL:-0}")
if [ "$backend" != mpi ]; then
  run_ranks 2 2 "${settings[@]}" -- "$build/bin/conformance" --gtest_brief=1 --gtest_filter="$filter"
  exit
fi

# Open MPI starts its daemon on the other host through an agent; both talk over the bridge's subnet only.
command -v mpirun.openmpi >/dev/null || skip "Open MPI is not installed"
cat >"$hosts_work/agent" <<END
#!/bin/sh
# called as: agent HOST COMMAND…
name=\$1; shift
exec unshare --uts sh -c 'hostname "\$1"; exec ip netns exec "\$1" sh -c "\$2"' sh "\$name" "\$*"
END
chmod +x "$hosts_work/agent"
for name in "${host_name[@]}"; do echo "$name slots=2"; done >"$hosts_work/hostfile"
exports=()
for setting in "${settings[@]}"; do exports+=(-x "$setting"); done
on_host 0 mpirun.openmpi --allow-run-as-root --hostfile "$hosts_work/hostfile" -n 4 \
  --mca plm_rsh_agent "$hosts_work/agent" --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
  "${exports[@]}" -x MEDLEY_STORE="${host_address[0]}:29400" -x MEDLEY_TOKEN="$hosts_tag" \
  "$build/bin/conformance" --gtest_brief=1 --gtest_filter="$filter"
