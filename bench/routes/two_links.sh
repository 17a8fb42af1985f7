#!/usr/bin/env bash
# Split routes over two links: two hosts (network namespaces) with two links of the same rate each, ucx on the first and gloo on the second.
# Tunes all_reduce and broadcast over ucx, gloo and the split ucx|gloo, and shows what the table chooses.
#   bench/routes/two_links.sh BUILD [RATE] [SIZES] [SECONDS]      RATE as tc takes it (200mbit), SIZES as medley tune does (2M:2M)
set -uo pipefail
build=$1 rate=${2:-200mbit} sizes=${3:-2M:2M} seconds=${4:-30}
. "$(dirname "$0")/../../tests/hosts/hosts.sh"
make_hosts 2
add_second_link
for name in "${host_name[@]}"; do
  for link in eth0 eth1; do
    ip netns exec "$name" tc qdisc add dev "$link" root tbf rate "$rate" burst 64kb latency 50ms || skip "tc cannot limit a link here"
  done
done
run_ranks 2 1 UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MEDLEY_GLOO_INTERFACE=eth1 MEDLEY_TABLE= -- \
  "$build/bin/medley" tune --backends 'ucx,gloo,ucx|gloo' --op all_reduce,broadcast --sizes "$sizes" --seconds "$seconds" -o "$hosts_work/routes.json" || exit 1
for op in all_reduce broadcast; do
  "$build/bin/medley" explain --table "$hosts_work/routes.json" --op $op --bytes "${sizes%%:*}" --ranks 2 --hosts 2
done
