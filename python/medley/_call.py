"""What every operation shares: its keywords, and the group it runs on."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict, Union

from ._core import CallOptions, Comm, ErrorFeedback
from .job import world


class SupportsDLPack(Protocol):
    """An array that exports its memory: a NumPy array, a PyTorch tensor, a CuPy array."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


#: Anything that speaks DLPack or the buffer protocol (bytearray, memoryview, array.array).
Array = Union[SupportsDLPack, bytearray, memoryview, bytes, Any]


class Keywords(TypedDict, total=False):
    """The keywords that every operation accepts.

    async_op: return a Work immediately; do not touch the arrays until it is complete.
    deadline: how many seconds the operation may take; default: the job's.
    algorithm: such as "ring" or "native"; default: the best known.
    deterministic: the same bits from run to run.
    stream: the CUDA stream, as a number, in which the operation on CUDA arrays is ordered.
    tag: for sends and receives, which match only if their tags are equal.
    compress: a codec such as "int8" or "zstd"; "none": not even if a rule says so.
    feedback: the tensor's ErrorFeedback, for lossy reductions.
    """

    async_op: bool
    deadline: float | None
    algorithm: str
    deterministic: bool
    stream: int
    tag: int
    compress: str
    feedback: ErrorFeedback | None


def prepare(backend: str, group: Comm | None, keywords: Keywords) -> tuple[Comm, CallOptions]:
    return (world() if group is None else group), CallOptions(backend, **keywords)
