#!/usr/bin/env bash
# How much faster a compressed all_reduce is between two hosts (network namespaces) whose link is limited.
#   bench/compress/hosts.sh [RATE] [BACKEND] [BUILD]      e.g. hosts.sh 1gbit gloo build/release; needs root
set -euo pipefail
cd "$(dirname "$0")/../.."
rate=${1:-1gbit} backend=${2:-gloo} build=${3:-build/release}
. tests/hosts/hosts.sh
make_hosts 2
for name in "${host_name[@]}"; do tc -n "$name" qdisc add dev eth0 root tbf rate "$rate" burst 128k latency 50ms; done
echo "two hosts, one rank each, $rate between them, over $backend; times slower without compression:"
run_ranks 2 1 -- "$build/bin/bench_compressed_all_reduce" "$backend"
