#!/usr/bin/env bash
# What MEDLEY_ONLINE=1 costs where nothing changes: all_reduce calls per second with it and without, in interleaved runs of 3 s.
#   cost.sh BUILD [RANKS [BYTES [ROUNDS]]]      BUILD was configured with -DMEDLEY_BENCH=ON
set -euo pipefail
build=$1 ranks=${2:-2} bytes=${3:-4096} rounds=${4:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/medley" tune -n "$ranks" --op all_reduce --sizes "$((bytes / 2)):$((bytes * 2))" --seconds 10 -o "$work/routes.json" >/dev/null
calls() {
  MEDLEY_TABLE=$work/routes.json MEDLEY_ONLINE=$1 "$build/bin/medley" run -n "$ranks" -- "$build/bin/bench_slowed_link" "$bytes" 3 2>&1 |
    grep -oP 'rank 0 \K[0-9]+(?= operations)'
}
for ((i = 0; i < rounds; i++)); do
  if ((i % 2)); then off=$(calls 0) on=$(calls 1); else on=$(calls 1) off=$(calls 0); fi
  awk -v on="$on" -v off="$off" 'BEGIN { printf "%d calls with it, %d without: %.3f\n", on, off, off / on }'
done | tee "$work/ratios"
awk '{ print $NF }' "$work/ratios" | sort -n | awk '{ r[NR] = $1 } END { printf "median: %.3f times as long\n", r[int((NR + 1) / 2)] }'
