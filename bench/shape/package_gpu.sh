#!/usr/bin/env bash
# Collects in build/gpu what a machine with a GPU but without our build needs: the command, its libraries, the
# sweep's list.
#   bench/shape/package_gpu.sh zoo.csv
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/gpu
cp build/release/bin/medley build/release/lib/libmedley.so build/release/lib/libmedley_gpu_bench.so build/gpu/
cp -L "$(ldconfig -p | awk '/libfmt.so.9 / {print $NF; exit}')" build/gpu/libfmt.so.9
strip --strip-debug build/gpu/medley build/gpu/*.so*
python3 bench/shape/make_sweep.py "$1" >build/gpu/sweep_list.csv
du -sh build/gpu
