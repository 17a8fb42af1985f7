#!/usr/bin/env bash
# A link that slows down in the middle of a job and recovers: 2 hosts x EACH ranks (network namespaces) with two links, eth0 for gloo and eth1
# for ucx. Tunes, starts a job of all_reduce with MEDLEY_ONLINE=1, limits the link of the table's choice with tbf, and removes the limit again.
# Prints when each rank changed its route; fails if a result was wrong or ranks differ.
#   slowed_link.sh BUILD [BYTES [EACH [RATE]]]      needs root; BUILD was configured with -DMEDLEY_BENCH=ON
set -uo pipefail
build=$1 bytes=${2:-262144} each=${3:-1} rate=${4:-50mbit}
. "$(dirname "$0")/../../tests/hosts/hosts.sh"
hosts_tag=${HOSTS_PREFIX:-}$hosts_tag
make_hosts 2
add_second_link
common=(MEDLEY_BACKENDS=shm,gloo,ucx MEDLEY_GLOO_INTERFACE=eth0 UCX_NET_DEVICES=eth1 UCX_TLS=tcp,self)
table=$hosts_work/routes.json
echo "tuning"
run_ranks 2 "$each" "${common[@]}" -- "$build/bin/medley" tune --op all_reduce --sizes "$((bytes / 4)):$bytes" --seconds "${TUNE_SECONDS:-15}" -o "$table" >"$hosts_work/tuned" ||
  { cat "$hosts_work/tuned"; exit 1; }
"$build/bin/medley" explain --table "$table" --op all_reduce --bytes "$bytes" --ranks $((2 * each)) --hosts 2 | head -20
if "$build/bin/medley" explain --table "$table" --op all_reduce --bytes "$bytes" --ranks $((2 * each)) --hosts 2 | grep -m1 -E 'gloo|ucx' | grep -q ucx; then
  link=eth1
else
  link=eth0
fi
slow_at=${SLOW_AT:-20} slow_for=${SLOW_FOR:-40} after=${AFTER:-40}
run_ranks 2 "$each" "${common[@]}" MEDLEY_TABLE="$table" MEDLEY_ONLINE=1 -- "$build/bin/bench_slowed_link" "$bytes" $((slow_at + slow_for + after)) &
job=$!
sleep "$slow_at"
for i in 0 1; do ip netns exec "${host_name[i]}" tc qdisc add dev $link root tbf rate "$rate" burst 32kb latency 50ms; done
slowed=$(date +%s.%2N)
sleep "$slow_for"
for i in 0 1; do ip netns exec "${host_name[i]}" tc qdisc del dev $link root; done
recovered=$(date +%s.%2N)
wait $job
status=$?
echo "$link limited to $rate at $slowed, unlimited at $recovered"
for ((rank = 0; rank < 2 * each; rank++)); do
  grep -h changed "$hosts_work/rank$rank" | grep -o '#.*' >"$hosts_work/changes$rank"
  cmp "$hosts_work/changes0" "$hosts_work/changes$rank" || status=1
done
[ $status -eq 0 ] && echo "all ranks changed routes with the same operations, and all results were right"
for ((rank = 1; rank < 2 * each; rank++)); do grep -h "wrong values" "$hosts_work/rank$rank"; done
exit $status
