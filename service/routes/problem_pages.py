"""The pages that problem types point to."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter, Request, Response

from service import jsontext
from service.conditional import unchanging
from service.problem_types import NOT_FOUND, all_types
from service.problems import Problem

router = APIRouter(prefix="/problems", include_in_schema=False)

_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    "<body style='font:16px/1.5 system-ui;max-width:42em;margin:2em auto;padding:0 1em'>{body}</body></html>"
)


@router.get("")
async def every(request: Request) -> Response:
    """The list of all."""
    rows = "".join(
        f"<li><a href='{kind.uri}'>{escape(kind.slug)}</a>: {escape(kind.title)} ({kind.status})</li>"
        for kind in sorted(all_types().values(), key=lambda kind: kind.slug)
    )
    return _shown(request, "Problems", f"<h1>Problems</h1><ul>{rows}</ul>")


@router.get("/{slug}")
async def one(slug: str, request: Request) -> Response:
    """What one kind of problem means, and what to do."""
    kind = all_types().get(slug)
    if kind is None:
        raise Problem(NOT_FOUND, f"No kind of problem is named {jsontext.shown(slug)}; /problems lists them.")
    about = escape(kind.about).replace("\n\n", "<p>")
    body = f"<h1>{escape(kind.title)}</h1><p>HTTP status {kind.status}, type <code>{kind.uri}</code><p>{about}"
    return _shown(request, escape(kind.title), body)


def _shown(request: Request, title: str, body: str) -> Response:
    return unchanging(request, _PAGE.format(title=title, body=body).encode(), media="text/html")
