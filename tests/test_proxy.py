"""The proxy, in front of a server that echoes and remembers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.processes import eventually
from tests.proxy import Proxy


class Echo:
    def __init__(self) -> None:
        self.seen = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://user:secret@127.0.0.1:{self.listener.getsockname()[1]}/3"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionResetError):
            while data := client.recv(1000):
                self.seen += data
                client.sendall(data)


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.listener.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy(echo.url) as proxy:
        yield proxy


def client(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def says(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(1000)


def test_it_forwards_and_keeps_the_rest_of_the_url(proxy: Proxy) -> None:
    assert proxy.url == f"redis://user:secret@127.0.0.1:{proxy.port}/3"
    with client(proxy) as one, client(proxy) as two:
        assert says(one, b"hello") == b"hello"
        assert says(two, b"there") == b"there"
        assert proxy.connections() == 2
    eventually(lambda: proxy.connections() == 0, 5, "the proxy to see the clients leave")


def test_down_cuts_and_refuses_and_up_is_the_same_port(proxy: Proxy) -> None:
    with client(proxy) as one:
        assert says(one, b"a") == b"a"
        proxy.down()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with pytest.raises(ConnectionRefusedError):
        client(proxy)
    proxy.up()
    with client(proxy) as one:
        assert says(one, b"b") == b"b"


def test_cut_after_delivers_so_many_bytes_and_cuts_everybody_once(proxy: Proxy, echo: Echo) -> None:
    with client(proxy) as one, client(proxy) as two:
        assert says(one, b"ab") == b"ab"
        assert says(two, b"cd") == b"cd"
        proxy.cut_after(5)
        assert says(one, b"efg") == b"efg"
        two.sendall(b"hijk")
        for connection in (one, two):
            with pytest.raises(ConnectionResetError):
                connection.recv(1000)
    eventually(lambda: echo.seen == b"abcdefghi", 5, "exactly five bytes to arrive")
    with client(proxy) as one:
        assert says(one, b"long enough") == b"long enough"


def test_stall_is_silence_until_up(proxy: Proxy, echo: Echo) -> None:
    with client(proxy) as one:
        proxy.stall()
        one.sendall(b"x")
        one.settimeout(0.2)
        with pytest.raises(TimeoutError):
            one.recv(1)
        assert echo.seen == b""
        proxy.up()
        one.settimeout(5)
        assert one.recv(1) == b"x"


def test_a_reply_can_be_lost_after_the_request_arrived(proxy: Proxy, echo: Echo) -> None:
    with client(proxy) as one:
        proxy.stall(replies_only=True)
        one.sendall(b"commit")
        eventually(lambda: echo.seen == b"commit", 5, "the request to arrive")
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
