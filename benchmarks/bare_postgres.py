"""The bare script beside `payments serve`: the same rows, through nothing but psycopg.

Read from standard input: the database, the rows of one transaction, for how long, and by how many
threads, eight unless it says so. Each has a connection of its own, and writes them again and again
with fresh keys.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import psycopg

THREADS = 8


def write(asked: dict[str, Any], thread: int, end: float, counts: list[int]) -> None:
    """Transactions until the end."""
    statements = [
        (
            f'INSERT INTO "{table}" ({", ".join(names)}) '
            f"VALUES ({', '.join(['%s'] * len(names))})".encode(),
            names.index("partition"),
            row,
        )
        for table, names, row in asked["template"]
    ]
    with psycopg.connect(asked["url"], prepare_threshold=0) as connection:
        while time.perf_counter() < end:
            mark = f"{os.getpid():07d}{thread}{counts[thread]:08d}"
            with connection.pipeline():
                for statement, partition, row in statements:
                    # Keys get fresh values, as in a create; bodies stay as they are.
                    fresh = [
                        mark + value
                        if place != partition and isinstance(value, str) and 8 < len(value) < 300
                        else value
                        for place, value in enumerate(row)
                    ]
                    connection.execute(statement, fresh)
                connection.commit()
            counts[thread] += 1


def main() -> None:
    asked = json.load(sys.stdin)
    sys.setswitchinterval(0.0005)
    counts = [0] * asked.get("threads", THREADS)
    began = time.perf_counter()
    end = began + asked["seconds"]
    threads = [
        threading.Thread(target=write, args=(asked, number, end, counts))
        for number in range(len(counts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"transactions": sum(counts), "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main()
