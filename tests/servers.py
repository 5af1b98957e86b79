"""Throwaway database and broker servers: on free ports, in temporary directories, never left behind.

Every server runs under a small keeper process (this file, run as a program) whose standard input is a pipe
from us. However we end, a SIGKILL included, the pipe closes, and the keeper then stops the server with all
its children and removes its directory.
"""

from __future__ import annotations

import atexit
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

START_SECONDS = 90.0
STOP_SECONDS = 15.0
PLACES = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/postgresql/*/bin", "/opt/homebrew/bin"]


class CannotStart(Exception):
    """The server cannot be started here; the message says why."""


def program(*names: str, first: str = "") -> str:
    """The path of the first of these programs that is installed. Raises CannotStart if none is."""
    folders = [str(found) for place in PLACES for found in sorted(Path("/").glob(place[1:]), reverse=True)]
    search = os.pathsep.join([first, os.environ.get("PATH", ""), *folders])
    for name in names:
        if path := shutil.which(name, path=search):
            return path
    raise CannotStart(f"{names[0]} is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def account(name: str) -> str | None:
    """The user to run a server as: servers that refuse root get their own account when we are root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        raise CannotStart(f"running as root and there is no user {name!r}") from None


@dataclass
class Server:
    """One throwaway server. It may be stopped or killed and started again: data and port stay the same."""

    url: str
    command: list[str]
    directory: Path
    user: str | None = None
    stop_signal: int = signal.SIGKILL
    environment: dict[str, str] = field(default_factory=dict)
    _keeper: subprocess.Popen[bytes] | None = None

    def start(self, probe: Callable[[str], None]) -> None:
        """Start and wait until `probe(url)` stops raising. Raises CannotStart with the end of the log."""
        order = {
            "command": self.command,
            "directory": str(self.directory),
            "user": self.user,
            "stop_signal": int(self.stop_signal),
        }
        self._keeper = subprocess.Popen(
            [sys.executable, __file__, json.dumps(order)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "HOME": str(self.directory), "LC_ALL": "C", **self.environment},
        )
        atexit.register(self.close)
        limit, pause = time.monotonic() + START_SECONDS, threading.Event()
        while True:
            try:
                return probe(self.url)
            except ImportError as error:
                self.close()
                raise CannotStart(f"the Python client is not installed: {error}") from error
            except Exception as error:
                if self._keeper.poll() is not None or time.monotonic() > limit:
                    tail = self.log()[-400:].strip()
                    self.close()
                    raise CannotStart(f"{self.command[0]} did not come up: {error}; {tail}") from error
            pause.wait(0.05)

    def log(self) -> str:
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        """Stop the server and keep its data, so that `start` continues from there."""
        self._release(b"keep")

    def kill(self) -> None:
        """SIGKILL the server and its children, as a crash would; the data stays.

        MariaDB, as set up here, may lose its last second of commits by this.
        """
        if self._keeper is not None:
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._release(b"")

    def close(self) -> None:
        """Stop the server and remove its directory."""
        atexit.unregister(self.close)
        self._release(b"")
        shutil.rmtree(self.directory, ignore_errors=True)

    def _release(self, word: bytes) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            try:
                keeper.communicate(word, timeout=STOP_SECONDS * 2)
            except subprocess.TimeoutExpired:
                os.killpg(keeper.pid, signal.SIGKILL)
                keeper.wait()


def _directory(kind: str, user: str | None) -> Path:
    path = Path(tempfile.mkdtemp(prefix=f"onebeat-{kind}-"))
    if user:
        shutil.chown(path, user)
    return path


def _prepare(command: list[str], user: str | None, directory: Path) -> None:
    done = subprocess.run(command, user=user, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(directory, ignore_errors=True)
        raise CannotStart(f"{command[0]}: {(done.stderr or done.stdout).strip()[-400:]}")


def postgresql() -> Server:
    initdb, postgres, user = program("initdb"), program("postgres"), account("postgres")
    directory, port = _directory("postgresql", user), free_port()
    data = str(directory / "data")
    _prepare(
        [initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"],
        user,
        directory,
    )
    options = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": "300",
    }
    with (Path(data) / "postgresql.conf").open("a") as config:  # so that a statement can switch it on
        config.write("fsync = off\n")
    command = [
        postgres,
        "-D",
        data,
        "-p",
        str(port),
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    # SIGQUIT: at once, but it frees its shared memory, which a SIGKILL would leave in the system.
    return Server(f"postgresql://postgres@127.0.0.1:{port}/", command, directory, user, signal.SIGQUIT)


def pgbouncer(target: str, size: int) -> Server:
    """PgBouncer in transaction mode before the PostgreSQL server at the URL `target`, with so many server connections
    for each database. Every database of the server is to be had through it.
    """
    binary, user, at = program("pgbouncer"), account("postgres"), urlsplit(target)
    directory, port = _directory("pgbouncer", user), free_port()
    login = f"host={at.hostname} port={at.port or 5432} user={unquote(at.username or 'postgres')}"
    if at.password:
        login += f" password={unquote(at.password)}"
    options = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": str(size),
        "max_client_conn": "300",
    }
    lines = ["[databases]", f"* = {login}", "[pgbouncer]", *(f"{name} = {value}" for name, value in options.items())]
    file = directory / "pgbouncer.ini"
    file.write_text("\n".join(lines))
    url = f"postgresql://postgres@127.0.0.1:{port}/"
    return Server(url, [binary, str(file)], directory, user, signal.SIGTERM)


def mariadb() -> Server:
    server, user = program("mariadbd", "mysqld"), account("mysql")
    install = program("mariadb-install-db")
    directory, port = _directory("mariadb", user), free_port()
    data = f"--datadir={directory / 'data'}"
    _prepare(
        [install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"],
        user,
        directory,
    )
    # Its own folder for temporary files: in a shared one, another server that starts may tidy them away.
    command = [server, "--no-defaults", data, f"--tmpdir={directory}", f"--port={port}", "--bind-address=127.0.0.1"]
    command += [f"--socket={directory / 's'}", f"--pid-file={directory / 'pid'}"]
    command += ["--innodb-flush-log-at-trx-commit=0", "--max-connections=300"]
    # SIGTERM: what was committed must survive a stop; with this log setting only a tidy end writes it out.
    return Server(f"mysql://root@127.0.0.1:{port}/", command, directory, user, signal.SIGTERM)


def redis() -> Server:
    binary = program("redis-server", "valkey-server")
    directory, port = _directory("redis", None), free_port()
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", "256"]
    return Server(f"redis://127.0.0.1:{port}/0", [*command, "--dir", str(directory)], directory)


def rabbitmq() -> Server:
    # Debian's wrapper in /usr/sbin insists on its own user; the script it calls does not.
    binary, epmd = program("rabbitmq-server", first="/usr/lib/rabbitmq/bin"), program("epmd")
    directory, port, names = _directory("rabbitmq", None), free_port(), free_port()
    environment = {
        "RABBITMQ_NODENAME": f"onebeat{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(directory / "none"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "none-env"),
        "ERL_EPMD_PORT": str(names),
    }
    # Erlang starts a name daemon that outlives it, unless one listens already: ours, ended with the group.
    command = ["/bin/sh", "-c", '"$0" -port "$1" & exec "$2"', epmd, str(names), binary]
    return Server(f"amqp://guest:guest@127.0.0.1:{port}//", command, directory, None, signal.SIGTERM, environment)


def _keep(order: dict[str, Any]) -> None:
    """The keeper: runs the server until our standard input closes or the server ends by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = (Path(order["directory"]) / "server.log").open("ab")
    server = subprocess.Popen(
        order["command"],
        user=order["user"],
        cwd=order["directory"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )

    stopping = threading.Event()

    def watch() -> None:
        server.wait()
        if not stopping.is_set():
            os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    word = sys.stdin.buffer.read()
    stopping.set()
    server.send_signal(order["stop_signal"])
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
    if word != b"keep":
        shutil.rmtree(order["directory"], ignore_errors=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    _keep(json.loads(sys.argv[1]))
