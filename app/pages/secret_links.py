"""Pages behind a secret link: how a new one is gone to, and how its edit token is shown, once."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.store.records import Created

SEE_OTHER: Final = 303
SHOWN_ONCE_S: Final = 300
COOKIE: Final = "edit_token"
PRIVATE: Final = {"Cache-Control": "private, no-store", "X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"}


def to_new_link(request: Request, made: Created, path: str) -> Response:
    """Go to the page of a link that was just made.

    The token travels in a cookie of this one page, which the page takes back: never in an address.
    """
    response = RedirectResponse(path, SEE_OTHER, PRIVATE)
    response.set_cookie(
        COOKIE,
        made.edit_token,
        max_age=SHOWN_ONCE_S,
        path=path,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def edit_token_of(request: Request) -> str | None:
    """The token that the page is to show, where the link was just made."""
    return request.cookies.get(COOKIE)


def shown_once(request: Request, response: Response, path: str) -> Response:
    """The page, which takes the token back."""
    if edit_token_of(request):
        response.delete_cookie(COOKIE, path=path)
    return response
