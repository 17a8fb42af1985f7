"""Compresses some calls, and the gradients of DDP (docs/compression.md)."""

# No postponed annotations: DDP looks at those of its hooks.
import contextlib
from typing import Dict, Iterator, Optional, Tuple

import torch
import torch.distributed as dist

from . import _c10d
from ._c10d import ErrorFeedback


@contextlib.contextmanager
def compress(codec: str, feedback: Optional[ErrorFeedback] = None) -> Iterator[None]:
    """Operations that this thread issues inside are compressed by `codec`, such as "int8"; "none": not even if a rule says so.

    All ranks of a group use the same codec. `feedback` belongs to the one tensor that is reduced inside. Unlike route() it
    covers no other thread: the operations of a backward pass are compressed by route("all_to_all=mpi+fp8_e4m3"), by rules or
    by compress_hook.
    """
    _c10d.push_compression(codec, feedback)
    try:
        yield
    finally:
        _c10d.pop_compression()


class CompressState:
    """The state of compress_hook for one model: a codec, and the error feedback of every bucket. It must live as long as the model is trained.

    codec: for all_reduce, such as "int8", "fp8_e4m3" or "top_k:0.01".
    group: the process group; default: the world.
    feedback: whether to send later what was lost; needed by top_k.
    start: the first steps that are not compressed, since early gradients change fast.
    """

    def __init__(self, codec: str, group: Optional[dist.ProcessGroup] = None, *, feedback: bool = True, start: int = 0) -> None:
        self.codec, self.group, self.feedback, self.start = codec, group, feedback, start
        self.step = 0
        self.residuals: Dict[int, Tuple[int, ErrorFeedback]] = {}   # by bucket: its elements, and what was lost of them

    def of_bucket(self, bucket: dist.GradBucket) -> Optional[ErrorFeedback]:
        """DDP arranges its buckets anew after the first step: what belongs to buckets that are gone is dropped."""
        if not self.feedback:
            return None
        index, elements = bucket.index(), bucket.buffer().numel()
        if self.residuals.get(index, (None,))[0] != elements:
            self.residuals[index] = (elements, ErrorFeedback())
        if bucket.is_last():
            for gone in [other for other in self.residuals if other > index]:
                del self.residuals[gone]
        return self.residuals[index][1]


def compress_hook(state: CompressState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook of DistributedDataParallel: averages gradients, compressed with error feedback::

        model.register_comm_hook(medley.torch.CompressState("int8"), medley.torch.compress_hook)
    """
    gradients = bucket.buffer()
    gradients.div_(dist.get_world_size(state.group))
    early = state.step < state.start
    with compress("none" if early else state.codec, None if early else state.of_bucket(bucket)):
        work = dist.all_reduce(gradients, group=state.group, async_op=True)
    if bucket.is_last():
        state.step += 1
    return work.get_future().then(lambda done: done.value()[0])
