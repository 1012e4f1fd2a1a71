"""A client of the protocol that checks the common parts of each response."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

ENTRY = {"name": "daily", "cron": "0 9 * * *", "type": "report.generate", "args": [7]}


class Answer:
    """A response, with the headers and the error envelope checked."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.headers = response.headers
        content = response.content
        assert self.headers["Content-Type"] == "application/openjobspec+json"
        assert self.headers["OJS-Version"] == "1.0"
        assert self.headers["X-Request-Id"]
        assert not content.startswith(b"<")
        self.data: dict[str, Any] = json.loads(content) if content else {}
        if self.status >= 400 and "error" in self.data:
            error = self.data["error"]
            assert set(error) == {"code", "message", "retryable", "details", "request_id"}
            assert error["request_id"] == self.headers["X-Request-Id"]
            assert isinstance(error["retryable"], bool)

    @property
    def code(self) -> tuple[int, str]:
        return self.status, self.data["error"]["code"]


class Caller:
    """A caller of the binding.

    Args:
        token: sent with each request, unless it is empty.
        client: a new one by default.
    """

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self.client = client or Client()
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Answer:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        content_type: str = "application/openjobspec+json",
        **headers: str,
    ) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
        response = self.client.generic(
            method, f"/ojs{path}", content, content_type=content_type, headers=sent
        )
        return Answer(response)
