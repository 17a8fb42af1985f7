"""The reduction operators."""

from enum import Enum


class ReduceOp(str, Enum):
    """Every operation that reduces takes one of these or its name.

    >>> ReduceOp.MAX == "max"
    True
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
