# A Slurm cluster on this machine: munged, slurmctld and one slurmd for each node, all below one folder. For `source`; needs root and
# Debian's slurm-wlm and munge, in a mount namespace of its own (slurm_test.sh makes it), because nodes need names.
slurm_folder=

start_slurm() {  # FOLDER NODES CORES: nodes n1, n2, … with CORES each
  slurm_folder=$1
  local nodes=$2 cores=$3 i
  mkdir -p "$slurm_folder"/{spool,state,run}
  chmod 755 "$slurm_folder"
  # Names that resolve to this machine, in this mount namespace only.
  { cat /etc/hosts; for ((i = 1; i <= nodes; ++i)); do echo "127.0.0.1 n$i"; done; } >"$slurm_folder/hosts"
  mount --bind "$slurm_folder/hosts" /etc/hosts
  dd if=/dev/urandom bs=1 count=1024 of="$slurm_folder/munge.key" 2>/dev/null
  chmod 400 "$slurm_folder/munge.key"
  munged --force --foreground --key-file="$slurm_folder/munge.key" --socket="$slurm_folder/run/munge.socket" --pid-file="$slurm_folder/run/munged.pid" \
    --log-file="$slurm_folder/munged.log" --seed-file="$slurm_folder/munge.seed" >/dev/null 2>&1 &
  slurm_pids=($!)
  cat >"$slurm_folder/slurm.conf" <<CONF
ClusterName=medley
SlurmctldHost=localhost
SlurmctldPort=$((slurm_port))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/run/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
ReturnToService=2
MessageTimeout=60
KillWait=5
InactiveLimit=0
JobRequeue=1
RequeueExit=99
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool/%n
SlurmctldPidFile=$slurm_folder/run/slurmctld.pid
SlurmdPidFile=$slurm_folder/run/slurmd-%n.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd-%n.log
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
$(for ((i = 1; i <= nodes; ++i)); do echo "NodeName=n$i NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((slurm_port + i)) CPUs=$cores RealMemory=1000"; done)
PartitionName=all Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF
  export SLURM_CONF=$slurm_folder/slurm.conf
  for ((i = 0; i < 100; ++i)); do [ -S "$slurm_folder/run/munge.socket" ] && break; sleep 0.1; done
  slurmctld -D >/dev/null 2>"$slurm_folder/slurmctld.err" &
  slurm_pids+=($!)
  for ((i = 1; i <= nodes; ++i)); do
    slurmd -D -N "n$i" >/dev/null 2>"$slurm_folder/slurmd-n$i.err" &
    slurm_pids+=($!)
  done
  for ((i = 0; i < 300; ++i)); do   # until all nodes are idle
    [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq "$nodes" ] && return 0
    sleep 0.2
  done
  echo "the nodes did not come up:"
  tail -n 5 "$slurm_folder"/*.err "$slurm_folder"/*.log
  return 1
}

stop_slurm() {
  [ -n "$slurm_folder" ] || return 0
  scancel --user=root 2>/dev/null
  local pid i
  for ((i = 0; i < 150; ++i)); do [ -n "$(squeue -h 2>/dev/null)" ] || break; sleep 0.1; done   # daemons that end first leave slurmstepd behind
  for pid in "${slurm_pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${slurm_pids[@]}"; do wait "$pid" 2>/dev/null; done
}
