"""The policy that every page is served under, as careful sites have it: nothing inline, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{what}-src 'self'" for what in ("script", "style", "img", "connect", "font")),
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)


class StrictPolicy:
    """Middleware."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        response = self.get_response(request)
        response["Content-Security-Policy"] = POLICY
        return response
