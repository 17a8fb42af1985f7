#!/usr/bin/env bash
# Fusion against one by one between hosts (network namespaces on one bridge). Needs root.
#   bench/fusion/hosts.sh [RANKS_EACH] [BACKEND] [BUILD] [ARGUMENTS of bench_fusion…]     e.g. hosts.sh 4 gloo build/release --rounds 5
set -euo pipefail
cd "$(dirname "$0")/../.."
each=${1:-1} backend=${2:-gloo} build=${3:-build/release}
shift $(($# < 3 ? $# : 3))
. tests/hosts/hosts.sh
make_hosts 2
echo "two hosts, $each ranks each:"
run_ranks 2 "$each" MEDLEY_BACKENDS="$backend" -- "$build/bin/bench_fusion" --backend "$backend" "$@"
