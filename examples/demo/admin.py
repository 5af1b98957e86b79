"""Serves the database that the demo left, in the Django admin, with a login that is printed."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOST, FIRST_PORT = "127.0.0.1", 8000


def free_port() -> int:
    """The first port from 8000 on that nobody listens on."""
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    sys.exit(f"no free port from {FIRST_PORT} to {FIRST_PORT + 99}")


def main() -> None:
    """Give the user `admin` a new password and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / ".demo", help="where the demo wrote")
    folder = parser.parse_args().folder.resolve()
    if not (folder / "demo.sqlite3").exists():
        sys.exit("there is nothing to show yet: run make demo first")
    os.environ.update(DEMO_FOLDER=str(folder), DJANGO_SETTINGS_MODULE="shop.settings")

    import django
    from django.core.management import call_command

    django.setup()
    from django.contrib.auth.models import User

    password, port = secrets.token_urlsafe(9), free_port()
    user, _ = User.objects.get_or_create(username="admin", defaults={"is_staff": True, "is_superuser": True})
    user.set_password(password)
    user.save()
    print(f"http://{HOST}:{port}/admin/   login: admin   password: {password}   (Ctrl-C stops it)", flush=True)
    # insecure: it serves the admin's own style sheets without DEBUG.
    call_command("runserver", f"{HOST}:{port}", use_reloader=False, insecure_serving=True)


if __name__ == "__main__":
    main()
