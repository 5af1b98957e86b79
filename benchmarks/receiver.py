"""Takes messages from the Redis queue as they come, and says how late each was.

python -m benchmarks.receiver UNTIL
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time


def main() -> int:
    import redis

    until = float(sys.argv[1])
    queue = os.environ["BENCH_QUEUE"]
    came: list[tuple[float, bytes]] = []
    with redis.Redis.from_url(os.environ["BENCH_BROKER"]) as server:
        while (left := until - time.time()) > 0:
            first = server.brpop([queue], timeout=max(0.01, min(left, 1.0)))
            if first is None:
                continue
            now = time.time()
            came.append((now, first[1]))
            # Those that came with it have waited no longer.
            came += [(now, one) for one in server.rpop(queue, 1000) or ()]
    late = []
    for at, message in came:
        args = json.loads(base64.b64decode(json.loads(message)["body"]))[0]
        late.append((at - args[0]) * 1000)
    print(json.dumps({"late_ms": late}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
