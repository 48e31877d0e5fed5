"""What the stress tests share: how long they take, threads that start together, programs of their own."""

import os
import subprocess
import sys
import threading

# `make stress` sets it: how many times as much as in the ordinary test run.
TIMES = int(os.environ.get("CYGRAD_STRESS", "1"))


def in_threads(count, body):
    """Run body(i) in threads that start together; raises what one of them raised."""
    start, errors = threading.Barrier(count), []

    def run(i):
        start.wait()
        try:
            body(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run_program(text, **options):
    """Run it in a process of its own, which must end well and say nothing on stderr; -> what it printed."""
    result = subprocess.run([sys.executable, "-c", text], timeout=300, capture_output=True, text=True, check=False,
                            **options)
    assert (result.returncode, result.stderr) == (0, ""), f"exit code {result.returncode}: {result.stderr}"
    return result.stdout.split()
