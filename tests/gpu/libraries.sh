# Sourced by scripts that run Medley on a machine with a GPU. use_build FOLDER: a build folder, an installed
# Medley, or either copied from another machine with the libraries it needs under carried/ (tests/gpu/pack).
use_build() {
  # NCCL may be installed as a Python package.
  local nccl
  nccl=$(python3 -c 'import importlib.util as u; print(list(u.find_spec("nvidia.nccl").submodule_search_locations)[0] + "/lib")' 2>/dev/null) || true
  export LD_LIBRARY_PATH="$1/lib:$1/carried${nccl:+:$nccl}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export MEDLEY_BACKEND_PATH="${MEDLEY_BACKEND_PATH:-$1/lib/medley}"
}
