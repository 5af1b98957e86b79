"""The admin as its owner sees it: `python -m benchmarks.pages TIMES` asks for each page so often."""

from __future__ import annotations

import json
import statistics
import sys
import time

from benchmarks.child import statements, up


def main() -> int:
    times = int(sys.argv[1])
    up()
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import reverse

    users = get_user_model().objects
    owner = users.filter(username="owner").first() or users.create_superuser("owner", "owner@example.org", "secret")
    client = Client()
    client.force_login(owner)
    answer = {}
    for name, page in (("list", "changelist"), ("add", "add")):
        address = reverse(f"admin:django_celery_beat_periodictask_{page}")
        client.get(address)  # templates are read once
        took, made = [], []
        for _ in range(times):
            begin = time.perf_counter()
            with statements() as those:
                response = client.get(address)
                if response.status_code != 200:
                    raise SystemExit(f"{address}: {response.status_code}")
            took.append((time.perf_counter() - begin) * 1000)
            made.append(len(those))
        answer[name] = {"ms": statistics.median(took), "statements": statistics.median(made)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
