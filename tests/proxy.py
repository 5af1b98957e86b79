"""A TCP proxy that fails on command: between a scheduler and its database or broker.

    with Proxy(broker.url) as proxy:
        start(broker_url=proxy.url)
        proxy.down()

It runs in a thread of the test and serves clients in any process.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

PORTS = {"postgresql": 5432, "mysql": 3306, "redis": 6379, "amqp": 5672}
CHUNK = 65536
T = TypeVar("T")


class Proxy:
    """Forwards connections to the server of the URL `target`; its own `url` and `port` lead to the proxy."""

    def __init__(self, target: str) -> None:
        at = urlsplit(target)
        self._server_at = (at.hostname or "127.0.0.1", at.port or PORTS[at.scheme])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listener: asyncio.Server | None = None
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._forward = {"requests": asyncio.Event(), "replies": asyncio.Event()}
        self._left: int | None = None
        self.port = 0
        self._thread.start()
        self.up()
        account = at.netloc.rpartition("@")[0]
        self.url = at._replace(netloc=f"{account}@127.0.0.1:{self.port}".lstrip("@")).geturl()

    def up(self) -> None:
        """Accept and forward: the normal state, and the end of all the others."""
        self._call(self._up())

    def down(self) -> None:
        """Refuse new connections and cut those there are."""
        self._call(self._down())

    def stall(self, *, replies_only: bool = False) -> None:
        """Keep every connection open, accept new ones, forward nothing: a host that went silent.

        With `replies_only` the server still gets all that the clients send: cut then, and the reply is lost
        while what it answered (a COMMIT, say) has happened.
        """
        self._call(self._stall(replies_only))

    def cut(self) -> None:
        """Cut the connections there are; new ones are welcome."""
        self._call(self._cut())

    def cut_after(self, n_bytes: int) -> None:
        """Once: cut every connection after `n_bytes` more from all clients together. Those bytes arrive."""
        self._call(self._cut_after(n_bytes))

    def connections(self) -> int:
        return len(self._pairs)

    def close(self) -> None:
        if self._thread.is_alive():
            self._call(self._down())
            self._call(self._end_tasks())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _up(self) -> None:
        self._left = None
        for event in self._forward.values():
            event.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port, reuse_address=True)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        await self._cut()

    async def _stall(self, replies_only: bool) -> None:
        self._forward["replies"].clear()
        if not replies_only:
            self._forward["requests"].clear()

    async def _cut_after(self, n_bytes: int) -> None:
        self._left = n_bytes

    async def _cut(self) -> None:
        for client, server in list(self._pairs):
            self._end(client, server)

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._pairs.discard((client, server))
        raw = client.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            # A reset, not a polite end: what a client sees when a host dies.
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.transport.abort()
        server.close()  # what was written to the server is still delivered

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        try:
            server_in, server_out = await asyncio.open_connection(*self._server_at)
        except OSError:
            client_out.transport.abort()
            return
        pair = (client_out, server_out)
        if self._listener is None:  # went down while we connected
            self._end(*pair)
            return
        self._pairs.add(pair)
        for name, source, sink in (("requests", client_in, server_out), ("replies", server_in, client_out)):
            task = self._loop.create_task(self._pump(name, source, sink, pair))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(
        self,
        name: str,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        try:
            while chunk := await source.read(CHUNK):
                await self._forward[name].wait()
                if name == "requests" and self._left is not None:
                    chunk = chunk[: self._left]
                    self._left -= len(chunk)
                    sink.write(chunk)
                    if not self._left:
                        self._left = None
                        return await self._cut()
                else:
                    sink.write(chunk)
                await sink.drain()
        except OSError:
            pass
        # One side has ended by itself: so does the other, after it got what was on its way.
        self._pairs.discard(pair)
        for writer in pair:
            writer.close()
        return None
