"""A client that calls an ASGI application in this process, without a network."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class Answer:
    """What the application answered."""

    status_code: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        """The text as JSON."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Client:
    """Sends requests to an application."""

    app: Any

    def get(self, path: str, host: str = "127.0.0.1:8017") -> Answer:
        """Answer to GET."""
        return self.request("GET", path, host)

    def request(self, method: str, path: str, host: str = "127.0.0.1:8017") -> Answer:
        """Answer to a request, when it is complete."""
        return asyncio.run(self._request(method, path, host))

    async def _request(self, method: str, path: str, host: str) -> Answer:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", host.encode())],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8017),
        }
        sent: list[Any] = []
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()  # the client stays connected
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], headers, body.decode())
