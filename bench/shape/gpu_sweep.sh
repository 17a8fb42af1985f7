#!/usr/bin/env bash
# The measured sweep of one GPU, time-boxed: cuBLASLt products, bandwidth kernels, PyTorch attention.
#   OUT=dir bench/shape/gpu_sweep.sh [--seconds 350] [--bin build/gpu] [--list build/gpu/sweep_list.csv] [--dry-run]
# Leaves gemm.csv, stream.csv, attention.csv, stream_torch.csv, torch_gemm.csv, clocks.csv and log.txt in
# $OUT; files are written row by row, so an interrupted run keeps what it measured.
set -u
cd "$(dirname "$0")/../.."
seconds=350 bin=build/gpu list=build/gpu/sweep_list.csv dry=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --bin) bin=$2; shift 2 ;;
    --list) list=$2; shift 2 ;;
    --dry-run) dry=(--dry-run); shift ;;
    *) echo "gpu_sweep.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
: "${OUT:?names the folder for the results}"
mkdir -p "$OUT"
exec > >(tee -a "$OUT/log.txt") 2>&1
export LD_LIBRARY_PATH=$PWD/$bin:${LD_LIBRARY_PATH:-}
source bench/shape/cublaslt.sh
command -v nvidia-smi >/dev/null && {
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader -lms 500 >"$OUT/clocks.csv" 2>/dev/null &
  sampler=$!
  trap 'kill $sampler 2>/dev/null' EXIT
}

torch_seconds=$((seconds / 4))
gemm_seconds=$((seconds - torch_seconds - 20))
timeout $((gemm_seconds + 15)) "$bin/medley" shape bench --gemms "$list" --csv "$OUT/gemm.csv" --stream-csv "$OUT/stream.csv" \
  --seconds "$gemm_seconds" --best-of 8 --best-of-every 24 "${dry[@]}"
echo "gemm sweep ended with status $?"
PYTHONUNBUFFERED=1 timeout $((torch_seconds + 20)) python3 bench/shape/torch_bench.py --out "$OUT" --seconds "$torch_seconds" --gemms "$list"
echo "torch bench ended with status $?"
wc -l "$OUT"/*.csv
head -4 "$OUT/gemm.csv" 2>/dev/null
tail -3 "$OUT/attention.csv" 2>/dev/null
