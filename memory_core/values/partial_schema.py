"""The schema by which pydantic, and with it FastAPI, reads a value whose fields can be left unset."""

from __future__ import annotations

from typing import Any, Union, get_args

from memory_core.values.unset import Unset
from memory_core.values.value import Value, given_fields, hints_of


def partial_schema(cls: type[Value], handler: Any) -> Any:  # pydantic's types, which are not imported at run time
    """The pydantic schema of a value whose fields are all optional and serialised only if they are set."""
    from pydantic_core import core_schema as core  # noqa: PLC0415  (called by pydantic alone, so it is there)

    given = core.typed_dict_schema(
        {
            name: core.typed_dict_field(handler.generate_schema(_without_unset(hint)), required=False)
            for name, hint in hints_of(cls).items()
        },
        cls_name=cls.__name__,
        extra_behavior="forbid",
    )
    made = core.no_info_after_validator_function(lambda values: cls(**values), given)
    return core.no_info_wrap_validator_function(  # a union would put the names of its parts into every error
        lambda value, read: value if isinstance(value, cls) else read(value),
        made,
        serialization=core.plain_serializer_function_ser_schema(
            lambda value: dict(given_fields(value)), return_schema=given
        ),
    )


def _without_unset(hint: Any) -> Any:
    rest = tuple(each for each in get_args(hint) if each is not Unset)
    return Union[rest]  # noqa: UP007  (made at run time)
