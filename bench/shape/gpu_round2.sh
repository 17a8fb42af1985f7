#!/usr/bin/env bash
# A second sweep with less noise, with pauses and clocks, the paper's figures, and real layers; time-boxed.
#   OUT=dir bench/shape/gpu_round2.sh [--sweep 125] [--layers 120] [--bin build/gpu]
set -u
cd "$(dirname "$0")/../.."
sweep=125 layers=120 bin=build/gpu
while [ $# -gt 0 ]; do
  case $1 in
    --sweep) sweep=$2; shift 2 ;;
    --layers) layers=$2; shift 2 ;;
    --bin) bin=$2; shift 2 ;;
    *) echo "gpu_round2.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
: "${OUT:?names the folder for the results}"
mkdir -p "$OUT"
exec > >(tee -a "$OUT/log.txt") 2>&1
export LD_LIBRARY_PATH=$PWD/$bin:${LD_LIBRARY_PATH:-}
source bench/shape/cublaslt.sh
timeout 25 "$bin/medley" shape bench --gemms "$bin/figures_list.csv" --csv "$OUT/figures.csv" --seconds 12 --best-of 1
timeout $((sweep + 15)) "$bin/medley" shape bench --gemms "$bin/sweep2_list.csv" --csv "$OUT/gemm2.csv" --seconds "$sweep" --best-of 1
PYTHONUNBUFFERED=1 timeout $((layers + 15)) python3 bench/shape/validate.py --out "$OUT" --seconds "$layers" --compile
wc -l "$OUT"/*.csv
head -5 "$OUT/gemm2.csv" 2>/dev/null
cat "$OUT/validate.csv" 2>/dev/null
