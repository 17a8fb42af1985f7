"""What every operation shares: its keywords, and the group it runs on."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict, Union

from ._core import CallOptions, Comm
from .job import world


class SupportsDLPack(Protocol):
    """An array that gives out its memory: a NumPy array, a PyTorch tensor, a CuPy array."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


#: Anything that speaks DLPack or the buffer protocol (bytearray, memoryview, array.array).
Array = Union[SupportsDLPack, bytearray, memoryview, bytes, Any]


class Keywords(TypedDict, total=False):
    """The keywords that every operation accepts.

    async_op: return a Work at once instead of waiting; the arrays must not be touched until it is complete.
    deadline: how many seconds the operation may take; the job's own unless given.
    algorithm: such as "ring" or "native"; the best known unless given.
    deterministic: the same bits from run to run.
    stream: the CUDA stream, as a number, that CUDA arrays are ordered by.
    tag: of sends and receives, which match only on equal tags.
    """

    async_op: bool
    deadline: float | None
    algorithm: str
    deterministic: bool
    stream: int
    tag: int


def prepare(backend: str, group: Comm | None, keywords: Keywords) -> tuple[Comm, CallOptions]:
    return (world() if group is None else group), CallOptions(backend, **keywords)
