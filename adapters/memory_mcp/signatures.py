"""Tools whose parameters differ from those of their functions: the SDK reads a tool's schema from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Final

Tool = Callable[..., Coroutine[Any, Any, object]]
REQUIRED: Final = inspect.Parameter.empty
"""The default of a parameter without one."""


def with_parameters(tool: Tool, changed: Mapping[str, tuple[object, object]]) -> Tool:
    """The same tool with other annotations and defaults of some parameters.

    Args:
        tool: A function whose annotations can be evaluated.
        changed: The annotation and the default of each parameter that differs, by its name.
    """
    signature = inspect.signature(tool, eval_str=True)
    parameters = [
        each.replace(annotation=changed[each.name][0], default=changed[each.name][1]) if each.name in changed else each
        for each in signature.parameters.values()
    ]

    @wraps(tool)
    async def made(**arguments: Any) -> object:  # the SDK passes what the signature names
        return await tool(**arguments)

    made.__dict__["__signature__"] = signature.replace(parameters=parameters)
    made.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": signature.return_annotation}
    return made
