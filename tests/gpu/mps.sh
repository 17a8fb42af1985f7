# Sourced by scripts that run several ranks on one GPU: starts the MPS daemon, which lets their kernels run
# concurrently, and stops it at the end. $work: a folder that is then removed, too. Every rank needs its own
# NCCL_HOSTID, so that NCCL takes them for ranks of different hosts and uses sockets.
export NCCL_SOCKET_IFNAME=lo
work=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY="$work/pipe" CUDA_MPS_LOG_DIRECTORY="$work/log"
mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
stop_mps() {
  echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap stop_mps EXIT
if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d; then
  echo "gpu: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), MPS is on, $(date -u +%F)"
else
  echo "gpu: the MPS daemon could not be started; ranks on one GPU then take turns and are slow"
fi
