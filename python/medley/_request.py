"""Asks the extension module medley._analysis: makes its requests from keywords and typed results from its answers."""

from __future__ import annotations

import json
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def analysis() -> ModuleType:
    """The extension module, loaded at the first use, so that `import medley` stays light."""
    try:
        from . import _analysis
    except ImportError as error:
        raise ImportError(f"medley was built without its analysis ({error}); build it in Medley's repository") from error
    return _analysis


def fill(request_class: str, **options: Any) -> Any:
    """A request with the options that are not None."""
    request = getattr(analysis(), request_class)()
    for name, value in options.items():
        if value is not None:
            setattr(request, name, value)
    return request


def typed(result: type[T], values: dict[str, Any]) -> T:
    """An object of the result class with the values of a JSON object."""
    from ._result import build
    return build(result, values)


def ask(result: type[T], function: str, *arguments: Any) -> T:
    """What a function of the extension module answers, as an object."""
    return typed(result, json.loads(getattr(analysis(), function)(*arguments)))
