"""The torch.distributed backend "medley"::

    import torch.distributed as dist, medley.torch
    dist.init_process_group("medley")                     # nothing else changes

    medley.torch.replace("nccl")                          # programs that hard-wire a backend run on Medley unchanged
    with medley.torch.route("all_to_all=mpi"):            # these calls use another backend
        dist.all_to_all_single(routed, tokens)
    dist.new_group(ranks, pg_options=medley.torch.Options(rules="all_reduce=shm"))
    ddp.register_comm_hook(medley.torch.CompressState("int8"), medley.torch.compress_hook)   # docs/compression.md
    medley.torch.scopes(model)                            # traces show each operation's module and phase

It works with torchrun, mpirun and `medley run`. See docs/pytorch.md.
"""

try:
    import torch.distributed  # noqa: F401  its classes are the bases of ours
except ImportError as error:
    raise ImportError("medley.torch needs PyTorch: pip install torch, then build Medley again (docs/pytorch.md)") from error
try:
    from ._c10d import ErrorFeedback, Options, ProcessGroupMedley
except ImportError as error:
    raise ImportError(f"medley was built without torch, or against another version of it ({error}); build it again with "
                      "this torch, in Medley's repository: pip install scikit-build-core nanobind && "
                      "pip install --no-build-isolation --no-deps --force-reinstall .") from error

from .compress import CompressState, compress, compress_hook
from .launch import fill_in_environment
from .register import register
from .replace import replace
from .route import route
from .scopes import scopes
from .torch_own import install

__all__ = ["CompressState", "ErrorFeedback", "Options", "ProcessGroupMedley", "compress", "compress_hook", "replace", "route", "scopes"]

fill_in_environment()
register()
install()
