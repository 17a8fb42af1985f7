"""What all results share, and how one is built from the JSON that the library or the command answers with."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any, ClassVar, Iterable, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_ROWS_SHOWN = 200   # in a notebook, where a plan of a large model would have thousands
_PART = "part"      # the key of part() in a field's metadata


class Result:
    """What all results share. `ROWS` names the field that is shown as a table."""

    ROWS: ClassVar[str]
    _json: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The result as the command writes it with ``--json``."""
        return self._json

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(self._table())

    def _repr_html_(self) -> str:
        rows = self._table()
        caption = f"<b>{type(self).__name__}</b> {html.escape(self._summary())}"
        if not rows:
            return f"<p>{caption}: no {html.escape(self.ROWS)}</p>"
        columns = list(dict.fromkeys(name for row in rows for name in row))
        body = "".join(_cells("td", [row.get(name, "") for name in columns]) for row in rows[:_ROWS_SHOWN])
        more = "" if len(rows) <= _ROWS_SHOWN else f"<p>{len(rows) - _ROWS_SHOWN} more rows; to_pandas() has all</p>"
        return f'<table><caption style="text-align: left">{caption}</caption>{_cells("th", columns)}{body}</table>{more}'

    def _summary(self) -> str:
        """The fields that are one word or number."""
        values = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))  # type: ignore[arg-type]
        return ", ".join(f"{name} {_text(value)}" for name, value in values if isinstance(value, (str, int, float)) and len(str(value)) <= 60)

    def _table(self) -> list[dict[str, Any]]:
        return [_flat(vars(row)) for row in getattr(self, self.ROWS)]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Objects inside a row become columns such as memory.total; lists and what is not known are left out."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat(value, prefix if name == "values" else f"{prefix}{name}."))
        elif value is not None and not isinstance(value, list):
            flat[prefix + name] = value
    return flat


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cells(tag: str, values: Iterable[Any]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(_text(value))}</{tag}>" for value in values) + "</tr>"


def part(kind: type) -> dict[str, type]:
    """The metadata of a field whose value, or whose list's items, are objects of this class."""
    return {_PART: kind}


def build(result: type[T], values: dict[str, Any]) -> T:
    """The dataclass `result` with the values of a JSON object."""
    names = {each.name.rstrip("_") for each in dataclasses.fields(result)}
    if "values" in names:   # the point of a sweep, whose axes can be any key
        values = {**values, "values": {key: value for key, value in values.items() if key not in names}}
    known = {}
    for each in dataclasses.fields(result):
        key = each.name.rstrip("_")   # pass_ is a keyword without it
        if key not in values:
            continue   # the default, or a TypeError that names the field
        value, kind = values[key], each.metadata.get(_PART)
        if kind is not None:
            value = [build(kind, item) for item in value] if isinstance(value, list) else build(kind, value)
        known[each.name] = value
    made = result(**known)
    if isinstance(made, Result):
        object.__setattr__(made, "_json", values)
    return made
