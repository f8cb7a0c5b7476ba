"""The application: the API and the page behind one guard."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from memory_core.app.serve import api, changes, conversations, page, people, proposals
from memory_core.app.serve.beside import API, OF_OWNER, Beside
from memory_core.app.serve.guard import Guard
from memory_core.app.serve.health import Monitor, health, metrics
from memory_core.app.serve.hooks import hooks
from memory_core.app.serve.problems import Problem, problem, status_of
from memory_core.app.serve.served import Served
from memory_core.errors import MemoryCoreError
from memory_core.values.complaints import complaints
from memory_core.values.printable import one_line
from memory_core.web.requests import Requests

try:
    from fastapi import Depends, FastAPI
    from fastapi.exceptions import RequestValidationError
    from fastapi.openapi.utils import get_openapi
    from fastapi.routing import APIRoute
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

STATIC: Final = Path(__file__).parent / "static"


def application(
    served: Served, others: Mapping[str, ASGIApp] | None = None, requests: Requests | None = None
) -> ASGIApp:
    """The page and the API on a memory, behind the guard; the caller opens and closes the memory.

    Args:
        served: The memory and its rules.
        others: Applications at paths of their own, which know callers by the same tokens.
        requests: The counts of the server, for `/metrics`.
    """
    return Guard(Beside(unguarded(served, requests), others or {}), served.hosts)


def unguarded(served: Served, requests: Requests | None = None) -> FastAPI:
    """The application itself, whose routes can be listed."""
    app = FastAPI(
        title="memory-core",
        version=version("memory-core"),
        docs_url=None,  # they load their scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.served = served
    app.state.monitor = Monitor(served.memory, requests or Requests())
    app.include_router(health)
    app.include_router(metrics)
    app.include_router(api.others, prefix=API, tags=["operator"])
    app.include_router(api.records, prefix=API, tags=["own memories"])
    app.include_router(api.records, prefix=OF_OWNER, tags=["operator"], dependencies=[Depends(api.named_owner)])
    app.include_router(hooks, prefix=OF_OWNER, dependencies=[Depends(api.named_owner)])
    app.include_router(page.routes)
    app.include_router(people.routes)
    app.include_router(conversations.routes)
    app.include_router(changes.routes)
    app.include_router(proposals.routes)
    app.mount("/static", StaticFiles(directory=STATIC), "static")
    app.add_exception_handler(MemoryCoreError, _said)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.openapi = partial(_described, app)  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return app


def _operation_id(route: APIRoute) -> str:
    """The name of an operation in the description, and of the method of a generated client."""
    return f"{route.name}_of_owner" if route.path.startswith("/v1/owners/") else route.name


def _described(app: FastAPI) -> dict[str, Any]:
    """The description of the API, with the token that each call needs and the one form of all errors."""
    if app.openapi_schema is None:
        about = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = about["components"]
        parts["schemas"]["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "The token of a user or of the operator."}
        }
        about["security"] = [{"token": []}]
        for path in ("/v1/health", "/v1/live"):
            about["paths"][path]["get"]["security"] = []
        app.openapi_schema = about
    return app.openapi_schema


async def _said(request: Request, error: Any) -> Response:  # Starlette's handlers take any exception
    return _answer(request, status_of(error), str(error))


async def _invalid(request: Request, error: Any) -> Response:
    sent = {"path": request.path_params, "query": dict(request.query_params), "header": dict(request.headers)}
    return _answer(request, 422, complaints(error.errors(), {**sent, "body": error.body}))


async def _refused(request: Request, error: Any) -> Response:
    headers: dict[str, str] = error.headers or {}
    if headers.keys() & {"Location", "HX-Redirect"}:
        return Response(status_code=error.status_code, headers=headers)
    is_unrouted = error.status_code in {404, 405} and error.detail == HTTPStatus(error.status_code).phrase
    if is_unrouted and request.url.path.startswith(API):
        missing = f"{request.method} {one_line(request.url.path)}"
        return problem(error.status_code, f"there is no {missing}; {API}/openapi.json lists what there is", headers)
    return _answer(request, error.status_code, error.detail, headers)


def _answer(request: Request, status: int, said: str, headers: dict[str, str] | None = None) -> Response:
    if request.url.path.startswith(("/v1", "/metrics")):
        return problem(status, said, headers)
    return page.sorry(request, status, said)
