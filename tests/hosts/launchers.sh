#!/usr/bin/env bash
# Ranks on 2 hosts find each other through the environment that each launcher sets: launchers.sh MEET
# torchrun's and Slurm's environments are imitated, Open MPI's and MPICH's come from their mpirun.
set -uo pipefail
meet=$1
. "$(dirname "$0")/hosts.sh"
make_hosts 2
failures=0

expect_meeting() {  # NAME OUTPUT
  local rank
  for rank in 0 1 2 3; do
    grep -q "rank $rank of 4 met 0 1 2 3" <<<"$2" && continue
    echo "$1: rank $rank did not meet the others:"; echo "$2"; failures=1; return
  done
  echo "$1: met"
}

# started NAME FUNCTION: runs MEET on the host of each rank with the variables that `FUNCTION RANK` prints.
started() {
  local rank processes=()
  for rank in 0 1 2 3; do
    # shellcheck disable=SC2046
    on_host $((rank / 2)) env $($2 $rank) "$meet" >"$hosts_work/met$rank" 2>&1 &
    processes+=($!)
  done
  wait "${processes[@]}"
  expect_meeting "$1" "$(cat "$hosts_work"/met?)"
}

torchrun_rank() {
  echo "RANK=$1 WORLD_SIZE=4 LOCAL_RANK=$(($1 % 2)) LOCAL_WORLD_SIZE=2 GROUP_RANK=$(($1 / 2)) MASTER_ADDR=${host_name[0]}" \
       "MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 MEDLEY_TOKEN=$hosts_tag"
}
slurm_rank() {
  echo "SLURM_PROCID=$1 SLURM_LOCALID=$(($1 % 2)) SLURM_NODEID=$(($1 / 2)) SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4" \
       "SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=$hosts_tag-[0-1] SLURM_NODELIST=$hosts_tag-[0-1]" \
       "MEDLEY_TOKEN=$hosts_tag"
}
started torchrun torchrun_rank
started Slurm slurm_rank

# A plain sbatch script: Slurm's job variables without a step. It is one rank, and must not wait for the others.
script=$(on_host 0 env SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=4711 SLURM_NODELIST="$hosts_tag-[0-1]" "$meet" 2>&1)
[ "$script" = "rank 0 of 1 met 0" ] || { echo "sbatch: $script"; failures=1; }

# Without a token, ranks across hosts print the line to export.
untold=$(on_host 0 env $(slurm_rank 0) MEDLEY_TOKEN= "$meet" 2>&1)
grep -q 'export MEDLEY_TOKEN=' <<<"$untold" || { echo "no token: $untold"; failures=1; }

cat >"$hosts_work/agent" <<END
#!/bin/sh
# called as: agent [-x] HOST COMMAND…
[ "\$1" = -x ] && shift
name=\$1; shift
exec unshare --uts sh -c 'hostname "\$1"; exec ip netns exec "\$1" sh -c "\$2"' sh "\$name" "\$*"
END
chmod +x "$hosts_work/agent"
for name in "${host_name[@]}"; do echo "$name slots=2"; done >"$hosts_work/hostfile.openmpi"
for name in "${host_name[@]}"; do echo "$name:2"; done >"$hosts_work/hostfile.mpich"
store="${host_address[0]}:29400"
if command -v mpirun.openmpi >/dev/null; then
  met=$(on_host 0 mpirun.openmpi --allow-run-as-root --hostfile "$hosts_work/hostfile.openmpi" -n 4 \
        --mca plm_rsh_agent "$hosts_work/agent" --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        -x MEDLEY_TOKEN="$hosts_tag" -x MEDLEY_STORE="$store" "$meet" 2>&1)
  expect_meeting "Open MPI" "$met"
else
  echo "Open MPI: skipped, it is not installed"
fi
if command -v mpirun.mpich >/dev/null; then
  met=$(on_host 0 mpirun.mpich -f "$hosts_work/hostfile.mpich" -n 4 -launcher ssh -launcher-exec "$hosts_work/agent" -iface eth0 \
        -genv MEDLEY_TOKEN "$hosts_tag" -genv MEDLEY_STORE "$store" "$meet" 2>&1)
  expect_meeting MPICH "$met"
else
  echo "MPICH: skipped, it is not installed"
fi
exit $failures
