"""
Medley's runtime for Python; use it through the functions of the package medley.
"""

from collections.abc import Sequence

from .job import BackendInfo

__version__: str


class Work:
    """The handle of an operation issued with async_op=True."""

    def wait(self, timeout: float | None = None) -> bool:
        """
        Waits until the operation is complete and raises its error. With a timeout in seconds: False when that passed first; the operation goes on.
        """

    def test(self) -> bool:
        """
        Whether the operation is complete; moves pending operations and never blocks. Raises its error.
        """

    @property
    def complete(self) -> bool:
        """Whether it is complete, with or without an error; moves nothing."""

    @property
    def source(self) -> int:
        """Of a completed receive: the rank the message came from."""

class Job:
    """One rank's membership in a job: a context and what is pending in it."""

    def __init__(self, backends: Sequence[str], deadline: float | None = None, progress_thread: bool = False, exact: bool = False) -> None: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def synchronize(self) -> None: ...

    def backends(self) -> list[BackendInfo]: ...

def world(job: Job) -> Comm: ...

class ErrorFeedback:
    """
    What lossy compression left out of one tensor so far, to be sent with its next values: pass it to every all_reduce, reduce or reduce_scatter of that tensor.
    """

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def reset(self) -> None:
        """Forgets everything."""

class CallOptions:
    """What an operation is asked for beside its arrays."""

    def __init__(self, backend: str, async_op: bool = False, deadline: float | None = None, algorithm: str = '', deterministic: bool = False, stream: int = 0, tag: int = 0, compress: str = '', feedback: ErrorFeedback | None = None) -> None: ...

class Comm:
    """An ordered set of ranks with its own sequence of operations; a group."""

    @property
    def rank(self) -> int:
        """This rank's number in the group."""

    @property
    def size(self) -> int:
        """How many ranks the group has."""

    @property
    def name(self) -> str:
        """The name that errors give it."""

    def __repr__(self) -> str: ...

    def split(self, color: int, key: int = 0, exact: bool | None = None) -> Comm | None:
        """
        Makes a group of the ranks that give one color, ordered by (key, rank); None for a negative color. Called by every rank of this group.
        """

    def subset(self, ranks: Sequence[int], exact: bool | None = None) -> Comm | None:
        """
        Makes a group of the listed ranks, in that order; None for the others. Called by every rank.
        """

    def dup(self, fuse: bool = False, exact: bool | None = None) -> Comm | None:
        """
        Makes a group of the same ranks with its own sequence of operations. fuse: small async collectives travel together without being asked to. exact: every receive has exactly the size of its message.
        """

    def abort(self) -> None:
        """
        Makes every pending and later operation of this group fail, on all its ranks.
        """

    def send(self, options: CallOptions, tensor: object | None, dst: int) -> Work | None: ...

    def recv(self, options: CallOptions, tensor: object | None, src: int) -> Work | int | None: ...

    def sendrecv(self, options: CallOptions, outgoing: object | None, dst: int, incoming: object | None, src: int) -> Work | int | None: ...

    def batch(self, options: CallOptions, messages: Sequence[tuple[bool, object, int, int]]) -> Work | int | None: ...

    def broadcast(self, options: CallOptions, tensor: object | None, root: int) -> Work | None: ...

    def reduce(self, options: CallOptions, tensor: object | None, out: object | None, op: str, root: int) -> Work | None: ...

    def all_reduce(self, options: CallOptions, tensor: object | None, out: object | None, op: str) -> Work | None: ...

    def gather(self, options: CallOptions, tensor: object | None, out: object | None, root: int) -> Work | None: ...

    def scatter(self, options: CallOptions, tensor: object | None, out: object | None, root: int) -> Work | None: ...

    def all_gather(self, options: CallOptions, tensor: object | None, out: object | None) -> Work | None: ...

    def all_to_all(self, options: CallOptions, tensor: object | None, out: object | None) -> Work | None: ...

    def reduce_scatter(self, options: CallOptions, tensor: object | None, out: object | None, op: str) -> Work | None: ...

    def all_reduce_list(self, options: CallOptions, tensors: Sequence[object], outs: Sequence[object], op: str) -> Work | None: ...

    def broadcast_list(self, options: CallOptions, tensors: Sequence[object], root: int) -> Work | None: ...

    def all_gather_list(self, options: CallOptions, tensors: Sequence[object], outs: Sequence[object]) -> Work | None: ...

    def reduce_scatter_list(self, options: CallOptions, tensors: Sequence[object], outs: Sequence[object], op: str) -> Work | None: ...

    def barrier(self, options: CallOptions) -> Work | None: ...

    def gatherv(self, options: CallOptions, tensor: object | None, out: object | None, counts: Sequence[int], offsets: Sequence[int], root: int) -> Work | None: ...

    def scatterv(self, options: CallOptions, tensor: object | None, counts: Sequence[int], offsets: Sequence[int], out: object | None, root: int) -> Work | None: ...

    def all_gatherv(self, options: CallOptions, tensor: object | None, out: object | None, counts: Sequence[int], offsets: Sequence[int]) -> Work | None: ...

    def reduce_scatterv(self, options: CallOptions, tensor: object | None, counts: Sequence[int], offsets: Sequence[int], out: object | None, op: str) -> Work | None: ...

    def all_to_allv(self, options: CallOptions, tensor: object | None, in_counts: Sequence[int], in_offsets: Sequence[int], out: object | None, out_counts: Sequence[int], out_offsets: Sequence[int]) -> Work | None: ...

class FuseScope:
    """What medley.fuse() returns: collects small collectives of a group."""

    def __init__(self, group: Comm) -> None: ...

    def __enter__(self) -> FuseScope: ...

    def __exit__(self, *args: object) -> None: ...

    def flush(self) -> None:
        """Issues what was collected so far."""

class scope:
    """
    Operations issued by this thread inside `with medley.scope("forward/layer3.attention"):` are recorded with that phase and module; `medley trace` shows them. Those under "step" stand between two steps.
    """

    def __init__(self, name: str) -> None: ...

    def __enter__(self) -> scope: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def name(self) -> str: ...
