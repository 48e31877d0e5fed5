"""
``python -m tests.fuzz [COUNT]`` runs COUNT cases (default 100,000) in separate processes.

A process that dies takes no other case with it: the case is told, and the next process goes on after it.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CHUNK = 2500


def run_chunk(first, count):
    """Runs cases in a process, and in further ones where it dies.

    Parameters
    ----------
    first, count : int

    Returns
    -------
    list of str
        What went wrong.
    """
    problems, end = [], first + count
    while first < end:
        done = subprocess.run([sys.executable, "-m", "tests.fuzz.runner", str(first), str(end - first)],
                              capture_output=True, text=True, errors="replace", check=False)
        if done.stdout:
            problems.append(done.stdout.rstrip())
        if done.returncode == 0 or (done.returncode == 1 and done.stdout):
            break
        reached = [int(line) for line in done.stderr.splitlines() if line.isdigit()]
        if not reached:
            problems.append(f"the process ended with {done.returncode} before it ran anything\n{done.stderr[-3000:]}")
            break
        end_of_log = done.stderr.rpartition(f"\n{reached[-1]}\n")[2]
        problems.append(f"case {reached[-1]}: the process died with {done.returncode}\n{end_of_log[:6000]}")
        first = reached[-1] + 1
    return problems


def run(first, count, processes=2):
    """Runs cases in several processes.

    Parameters
    ----------
    first, count : int
    processes : int, default 2
        At a time.

    Returns
    -------
    list of str
        What went wrong.
    """
    chunks = [(start, min(CHUNK, first + count - start)) for start in range(first, first + count, CHUNK)]
    with ThreadPoolExecutor(processes) as pool:
        return [problem for problems in pool.map(lambda chunk: run_chunk(*chunk), chunks) for problem in problems]


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    problems = run(options.first, options.count, options.processes)
    for problem in problems:
        print(problem)
    wrong = sum(line.startswith("case ") for text in problems for line in text.splitlines())
    print(f"{options.count} cases from {options.first} on, {wrong} of them with a problem. See one again with "
          "python -m tests.fuzz.runner --show CASE")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
