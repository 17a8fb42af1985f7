# Chooses the cuBLASLt that the GPU scripts of this folder measure, unless MEDLEY_CUBLASLT names one: PyTorch's own copy first, since the
# predictions are for what PyTorch's users run. Sourced by gpu_sweep.sh and gpu_round2.sh.
if [ -z "${MEDLEY_CUBLASLT:-}" ]; then
  site=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
  for folder in "$site"/nvidia/cu13/lib "$site"/nvidia/cublas/lib /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
    for file in "$folder"/libcublasLt.so.1[23]; do
      if [ -e "$file" ]; then export MEDLEY_CUBLASLT=$file; break 2; fi
    done
  done
fi
echo "date $(date -u +%FT%TZ), cuBLASLt ${MEDLEY_CUBLASLT:-from the loader}"
