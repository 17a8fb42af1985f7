"""The exceptions of Medley: one class per kind of error, all derived from medley.Error.

>>> import numpy as np, medley
>>> medley.init()
>>> try:
...     medley.broadcast("auto", np.zeros(2), root=5)
... except medley.Invalid as error:
...     print(error.op, error.comm)
broadcast world
>>> medley.finalize()
"""

from __future__ import annotations

import copy


class Error(RuntimeError):
    """The message is for people; the attributes are for programs, and empty where they do not apply."""

    op: str | None = None            #: the operation, such as "all_reduce"
    comm: str = ""                   #: the name of the group
    sequence: int | None = None      #: the operation's number on its group
    backend: str = ""
    ranks: list[int] = []            #: the ranks awaited or at fault


class Invalid(Error, ValueError):
    """The call or an argument is wrong; nothing was sent."""


class Unavailable(Error):
    """A backend, a resource or a capability is missing."""


class Mismatch(Error):
    """Ranks called different operations."""


class Timeout(Error, TimeoutError):
    """The deadline passed."""


class RankLost(Error, ConnectionError):
    """A rank died or was cut off."""


class Aborted(Error):
    """The group was aborted."""


class System(Error, OSError):
    """The operating system or a library refused."""


def _class_giving(error: Error) -> type[Error]:
    """A class whose instance is a copy of this error: for code of torch that raises with only class and message."""
    return type(type(error).__name__, (type(error),), {"__new__": lambda cls, *message: copy.copy(error)})
