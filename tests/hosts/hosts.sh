# Creates "hosts" on one machine: network namespaces on one bridge, each with its own host name. Sourced by the tests here.
#   make_hosts N             N hosts: names in host_name[], addresses in host_address[]; removed when the shell ends
#   add_second_link          a second link, eth1, of every host on a bridge of its own: 10.78.0.1, 10.78.0.2, …
#   on_host I COMMAND…       runs a command on host I
#   run_ranks HOSTS EACH [VARIABLE=VALUE …] -- COMMAND…
#                            runs HOSTS × EACH ranks of a command and fails when one of them does
#   mpirun_ranks HOSTS EACH [VARIABLE=VALUE …] -- COMMAND…
#                            the same under Open MPI's mpirun, which merges the ranks' output
#   skip WHY                 ends the test: ctest counts it as skipped
# Concurrent runs do not interfere: every name contains the shell's pid, and the bridge is in a namespace.

skip() { echo "skipped: $*"; exit 77; }

host_name=()
host_address=()
hosts_tag=mdl$$
hosts_work=$(mktemp -d)

remove_hosts() {
  local name process
  for name in "${host_name[@]}" "$hosts_tag-switch"; do
    [ -e "/run/netns/$name" ] || continue
    for process in $(ip netns pids "$name"); do kill -KILL "$process" 2>/dev/null; done
    ip netns del "$name"
    rm -rf "/etc/netns/$name"
  done
  rm -rf "$hosts_work"
}
trap remove_hosts EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_hosts() {
  [ "$(id -u)" -eq 0 ] || skip "making network namespaces needs root"
  command -v ip >/dev/null || skip "ip (Debian: iproute2) is not installed"
  local switch=$hosts_tag-switch i
  ip netns add "$switch" 2>/dev/null || skip "this root may not make network namespaces"
  ip -n "$switch" link add bridge type bridge 2>/dev/null || skip "this kernel has no bridges"
  ip -n "$switch" link set bridge up
  for ((i = 0; i < $1; i++)); do
    host_name[i]=$hosts_tag-$i
    host_address[i]=10.77.0.$((i + 1))
  done
  for ((i = 0; i < $1; i++)); do
    local name=${host_name[i]} j
    ip netns add "$name"
    ip -n "$switch" link add "port$i" type veth peer name eth0 netns "$name"
    ip -n "$switch" link set "port$i" master bridge up
    ip -n "$name" link set lo up
    ip -n "$name" addr add "${host_address[i]}/24" dev eth0
    ip -n "$name" link set eth0 up
    # ip netns exec mounts this file over /etc/hosts
    mkdir -p "/etc/netns/$name"
    echo "127.0.0.1 localhost" >"/etc/netns/$name/hosts"
    for ((j = 0; j < $1; j++)); do echo "${host_address[j]} ${host_name[j]}" >>"/etc/netns/$name/hosts"; done
  done
}

add_second_link() {
  local switch=$hosts_tag-switch i
  ip -n "$switch" link add bridge1 type bridge
  ip -n "$switch" link set bridge1 up
  for i in "${!host_name[@]}"; do
    ip -n "$switch" link add "second$i" type veth peer name eth1 netns "${host_name[i]}"
    ip -n "$switch" link set "second$i" master bridge1 up
    ip -n "${host_name[i]}" addr add "10.78.0.$((i + 1))/24" dev eth1
    ip -n "${host_name[i]}" link set eth1 up
  done
}

on_host() {
  local name=${host_name[$1]}
  shift
  unshare --uts sh -c 'hostname "$1"; shift; exec ip netns exec "$@"' sh "$name" "$name" "$@"
}

run_ranks() {
  local hosts=$1 each=$2 variables=() rank status=0
  shift 2
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  local size=$((hosts * each)) processes=()
  for ((rank = 0; rank < size; rank++)); do
    on_host $((rank / each)) env MEDLEY_RANK=$rank MEDLEY_WORLD_SIZE=$size MEDLEY_LOCAL_RANK=$((rank % each)) \
      MEDLEY_STORE="${host_address[0]}:29400" MEDLEY_TOKEN="$hosts_tag" "${variables[@]}" "$@" \
      >"$hosts_work/rank$rank" 2>&1 &
    processes+=($!)
  done
  for ((rank = 0; rank < size; rank++)); do
    wait "${processes[rank]}" && continue
    status=1
    echo "rank $rank of $size failed:"
    tail -n 60 "$hosts_work/rank$rank" | sed "s/^/[$rank] /"
  done
  [ $status -eq 0 ] && cat "$hosts_work/rank0"
  return $status
}

# Open MPI starts its daemon on the other host through an agent; both communicate over the bridge's subnet only.
# No binding: on each host it would start with the first core of the same machine.
mpirun_ranks() {
  command -v mpirun.openmpi >/dev/null || skip "Open MPI is not installed"
  local hosts=$1 each=$2 exports=() i
  shift 2
  while [ "$1" != -- ]; do exports+=(-x "$1"); shift; done
  shift
  cat >"$hosts_work/agent" <<'END'
#!/bin/sh
# called as: agent HOST COMMAND…
name=$1; shift
exec unshare --uts sh -c 'hostname "$1"; exec ip netns exec "$1" sh -c "$2"' sh "$name" "$*"
END
  chmod +x "$hosts_work/agent"
  for ((i = 0; i < hosts; i++)); do echo "${host_name[i]} slots=$each"; done >"$hosts_work/hostfile"
  on_host 0 mpirun.openmpi --allow-run-as-root --bind-to none --hostfile "$hosts_work/hostfile" -n $((hosts * each)) \
    --mca plm rsh --mca plm_rsh_agent "$hosts_work/agent" --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
    "${exports[@]}" -x MEDLEY_STORE="${host_address[0]}:29400" -x MEDLEY_TOKEN="$hosts_tag" "$@"
}
