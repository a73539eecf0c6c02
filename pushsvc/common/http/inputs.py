"""What to do with the fields of an input object, so that a missing field costs nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rest_framework import serializers
from rest_framework.fields import empty

# A field's name, the field, and the serializer's method `validate_<name>` or None.
Asked = tuple[str, Any, Callable[[Any], Any] | None]


@dataclass(frozen=True, slots=True)
class Inputs:
    """`always`: names of the fields to look at even if they are missing. A missing one of the
    others has the value in `usual`, or what its function in `made` returns, or is left out."""

    fields: Mapping[str, Asked]
    order: Callable[[str], int]
    always: frozenset[str]
    usual: Mapping[str, Any]
    made: Sequence[tuple[str, Callable[[], Any]]]

    @classmethod
    def of(cls, serializer: serializers.Serializer[Any]) -> Self:
        fields: dict[str, Asked] = {
            name: (name, field, getattr(serializer, f"validate_{name}", None))
            for name, field in serializer.fields.items()
            if not field.read_only
        }
        always = frozenset(
            name
            for name, field, validate in fields.values()
            if field.required or validate or field.source != name
        )
        defaults = {
            name: field.default
            for name, field, _ in fields.values()
            if name not in always and field.default is not empty
        }
        made = {name: each for name, each in defaults.items() if callable(each)}
        usual = {name: each for name, each in defaults.items() if name not in made}
        return cls(fields, list(fields).index, always, usual, list(made.items()))

    def defaults(self) -> dict[str, Any]:
        """The values of fields that are missing, unless they are `always` looked at."""
        return {**self.usual, **{name: make() for name, make in self.made}}

    def asked(self, data: Mapping[str, Any]) -> Iterator[Asked]:
        """The fields to look at for this input, in the order of their declaration."""
        names = self.always | (self.fields.keys() & data.keys())
        return map(self.fields.__getitem__, sorted(names, key=self.order))
