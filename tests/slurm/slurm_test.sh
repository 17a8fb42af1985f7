#!/usr/bin/env bash
# Medley under a real Slurm with two nodes on this machine: slurm_test.sh MEDLEY HELLO [PYTHON PACKAGE]. Exits 77 with a sentence where
# Slurm is not installed or cannot run. Both nodes share this machine's memory, so that their ranks count as one host.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" -eq 0 ] || { echo "skipped: it needs root"; exit 77; }
for program in slurmctld slurmd srun sbatch munged unshare; do
  command -v $program >/dev/null || { echo "skipped: there is no $program (apt install slurm-wlm munge)"; exit 77; }
done
if [ "${MEDLEY_SLURM_INSIDE-}" != 1 ]; then
  unshare -m true 2>/dev/null || { echo "skipped: this system does not allow mount namespaces"; exit 77; }
  MEDLEY_SLURM_INSIDE=1 exec unshare -m --propagation private "$0" "$@"
fi
medley=$(realpath "$1") hello=$(realpath "$2") python=${3:+$(realpath -s "$3")} package=${4:+$(realpath "$4")}
folder=$(mktemp -d /tmp/medley-slurm-XXXXXX)
slurm_port=$((17000 + RANDOM % 10000))
. "$here/cluster.sh"
trap 'stop_slurm; umount /etc/hosts 2>/dev/null; rm -rf "$folder"' EXIT
start_slurm "$folder" 2 4 || { echo "skipped: Slurm does not start here"; exit 77; }
cd "$folder" || exit 1
unset ${!MEDLEY_@} 2>/dev/null
export MEDLEY_TOKEN=tests
failed=0
check() {  # TITLE CONDITION…: prints what was said when the condition does not hold
  local title=$1
  shift
  if "$@"; then echo "ok: $title"; else echo "FAILED: $title"; sed 's/^/  /' said.txt; failed=1; fi
}
said() { timeout 120 "$@" >said.txt 2>&1; status=$?; }
lines() { [ "$(grep -c "$2" said.txt)" -eq "$1" ]; }
ended() { [ "$status" -eq "$1" ]; }
state_of() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
wait_for() {  # JOB STATE…
  local job=$1 i
  shift
  for ((i = 0; i < 600; ++i)); do
    case " $* " in *" $(state_of "$job") "*) return 0 ;; esac
    sleep 0.1
  done
  return 1
}

said srun -N1 -n2 "$hello"
check "srun on one node" lines 2 "of 2: gradients 2"
said srun -N2 -n4 "$hello"
check "srun on two nodes" lines 4 "of 4: gradients 4"
said srun -N2 -n4 --mpi=pmi2 "$hello"
check "srun --mpi=pmi2" lines 4 "of 4: gradients 4"

# Two steps at once in one allocation: each finds its own ranks.
printf '#!/bin/bash\nsrun --overlap -N1 -n2 %q & srun --overlap -N2 -n4 %q & wait\n' "$hello" "$hello" >two.sh
said sbatch --parsable -N2 -n4 -o two.out two.sh
job=$(tail -n 1 said.txt)
wait_for "$job" COMPLETED FAILED
cp two.out said.txt
check "two steps at once" lines 2 "of 2: gradients 2"
check "and the other step" lines 4 "of 4: gradients 4"

printf '#!/bin/bash\n%q info >/dev/null && %q\n' "$medley" "$hello" >plain.sh
said sbatch --parsable -N1 -n1 -o plain.out plain.sh
wait_for "$(tail -n 1 said.txt)" COMPLETED FAILED
cp plain.out said.txt
check "a plain sbatch script is one rank" lines 1 "of 1: gradients 1"

# A rank is killed in the middle; Slurm is told to leave the others alone, and they end by themselves.
printf '#!/bin/bash\n[ "$SLURM_PROCID" != 1 ] || { sleep 4; kill -9 $$; } &\nexec %q soak --programs 1000000 --backends shm\n' "$medley" >failing.sh
chmod +x failing.sh
said srun -N2 -n4 --kill-on-bad-exit=0 --wait=100 ./failing.sh
check "a killed rank ends the step with an error" test "$status" -ne 0
check "and the others say which rank was lost" grep -q "rank [023]: .*rank 1" said.txt

# A job that is cancelled leaves no rank behind.
printf '#!/bin/bash\nexec srun -N2 -n4 %q soak --programs 1000000 --backends shm\n' "$medley" >long.sh
said sbatch --parsable -N2 -n4 -o long.out long.sh
job=$(tail -n 1 said.txt)
wait_for "$job" RUNNING
for ((i = 0; i < 300; ++i)); do [ "$(pgrep -fc "$medley soak --programs 1000000")" -ge 4 ] && break; sleep 0.1; done
scancel "$job"
check "scancel ends the job" wait_for "$job" CANCELLED
gone() { for ((i = 0; i < 300; ++i)); do pgrep -f "$medley soak --programs 1000000" >/dev/null || return 0; sleep 0.1; done; return 1; }
check "and all its ranks" gone

# A requeued job runs again under the same id, and its ranks meet again.
printf '#!/bin/bash\nsrun -N2 -n2 %q\n[ -e again ] || { touch again; sleep 600; }\n' "$hello" >requeue.sh
said sbatch --parsable --requeue -N2 -n2 -o requeue.out --open-mode=append requeue.sh
job=$(tail -n 1 said.txt)
for ((i = 0; i < 600; ++i)); do [ ! -e again ] || break; sleep 0.1; done
scontrol requeue "$job"
for ((i = 0; i < 60; ++i)); do   # Slurm starts a requeued job after two minutes, unless it is told not to wait
  [ "$(state_of "$job")" != PENDING ] || scontrol update "JobId=$job" StartTime=now 2>/dev/null
  [ "$(grep -c "of 2: gradients 2" requeue.out 2>/dev/null)" != 4 ] || break
  sleep 3
done
cp requeue.out said.txt
check "a requeued job runs twice" lines 4 "of 2: gradients 2"

said srun -N2 -n2 env MEDLEY_BACKENDS=mpi "$hello"
if grep -q "mpi" said.txt; then
  check "the mpi backend under plain srun names --mpi=pmix" grep -q -- "--mpi=pmix" said.txt
  if srun --mpi=list 2>&1 | grep -qw pmix; then
    said srun -N1 -n2 --mpi=pmix env MEDLEY_BACKENDS=mpi "$hello"
    check "and with it it works" lines 2 "of 2: gradients 2"
  fi
fi

# The lines of docs/quickstart-cluster.md.
said srun -N2 "$medley" info
check "every node says which backends it has" lines 2 "^shm  *yes"
said srun -N2 -n4 "$medley" tune --op all_reduce --sizes 1K:4K --backends shm --seconds 2 -o "$folder/routes.json"
check "srun tunes one table for all ranks" test -s routes.json
said "$medley" explain --table routes.json --op all_reduce --bytes 1K --ranks 4
check "explain reads it" grep -q "shm" said.txt
said env MEDLEY_TABLE=routes.json srun -N2 -n4 "$hello"
check "a job uses it" lines 4 "of 4: gradients 4"
# A rank stops: watch names it and ends, and the job can be cancelled.
printf '#!/bin/bash\nexec srun -N2 -n2 %q soak --programs 1000000 --backends shm --deadline 300\n' "$medley" >stuck.sh
said sbatch --parsable -N2 -n2 -o stuck.out --export=ALL,MEDLEY_TRACE="$folder/stuck" stuck.sh
job=$(tail -n 1 said.txt)
for ((i = 0; i < 300; ++i)); do [ "$(ls stuck/rank-*.trace 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.1; done
ranks=($(pgrep -f "$medley soak --programs 1000000 --backends shm --deadline 300"))
victim=
for pid in "${ranks[@]}"; do grep -qz "^SLURM_PROCID=1$" "/proc/$pid/environ" 2>/dev/null && [ "$(readlink "/proc/$pid/exe")" = "$medley" ] && victim=$pid; done
[ -z "$victim" ] || kill -STOP "$victim"
said srun --jobid="$job" --overlap -N1 -n1 "$medley" watch "$folder/stuck" --until-problem
check "watch names the rank that stopped" grep -q "rank 1" said.txt
[ -z "$victim" ] || kill -CONT "$victim"
scancel "$job"
check "and the job is cancelled" wait_for "$job" CANCELLED
# On one node: the two nodes here would use one folder for PMIx (spmix_appdir in /tmp), which on a cluster are two.
said salloc -N1 -n2 "$here/../../tools/cluster-report" -m "$medley" -b shm -s 2 -o "$folder/report"
check "the cluster report is whole" grep -q "report.tar.gz: 0 steps failed" said.txt
check "and has its page" test -s report/report.html

if [ -n "$python" ] && PYTHONPATH=$package "$python" -c "import torch, medley.torch" 2>/dev/null; then
  cat >train.py <<'PY'
import torch, torch.distributed as dist, medley.torch
dist.init_process_group("medley")
x = torch.ones(4)
dist.all_reduce(x)
print("sum", x[0].item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
PY
  said env PYTHONPATH="$package" srun -N2 -n2 "$python" train.py
  check "torch without torchrun" lines 2 "sum 2.0 of 2"
else
  echo "left out: torch without torchrun, for there is no medley.torch here"
fi
exit $failed
