#!/bin/bash
# Rooted collectives of shm beside Open MPI, 64 B to 4 MiB: for each number of ranks, (1) every algorithm of shm in turn, which is
# what the limits in src/backends/shm/crossovers.cpp are set by, and (2) Medley's own choice against Open MPI bound to cores.
# Usage: rooted.sh [MINUTES [RANKS …]]     MINUTES: for (2), each number of ranks; MEDLEY=PATH names the command
set -eu
cd "$(dirname "$0")/../.."
medley=${MEDLEY:-build/release/bin/medley}
minutes=${1:-1.5}
shift $(($# > 0))
for n in ${@:-2 4 8 16}; do
  echo "== $n ranks: algorithms of shm"
  for op in broadcast reduce; do
    "$medley" bench -n "$n" --op $op --sizes 64:4M --backends shm \
      --algorithms native,one_shot_segment,one_shot_direct,two_shot_segment,two_shot_direct --seconds 6
  done
  "$medley" bench -n "$n" --op scatter,gather --sizes 64:4M --backends shm --algorithms native,segment,direct,mixed --seconds 6
  echo "== $n ranks: against Open MPI"
  # Its status tells of cells that are slower; the next number of ranks is measured all the same.
  bench/mpi/compare -n "$n" --mpis openmpi --ops broadcast,scatter,gather,reduce --sizes 64:4M --minutes "$minutes" \
    --medley "$medley" || true
done
