"""
Compare with other libraries, for the figures of the documents: ``python -m benchmarks.compare``.

Libraries alternate (A B A B ...), each in a process. A ratio is the median over the rounds of a library's time divided
by ours. Libraries that are missing, or that do not support a scenario, are skipped. ``--write`` writes the figures to
``benchmarks/figures.json`` and to the documents.
"""

import argparse
import time
from importlib.util import find_spec

from .figures import table, write_lines
from .measuring import circumstances, paired, share_of_a_core, usable_cores
from .scenarios import SCENARIOS
from .turns import processes_of, rounds_of, summary
from .workloads import OTHERS

__all__ = ["compare", "paired"]

BUSY = 0.9                        # below this share of a core, the machine is busy


def installed(wanted):
    """Return the installed libraries among the requested ones."""
    return [name for name in wanted if find_spec(name.partition(".")[0])]


def compare(scenarios, others, threads, rounds, progress):
    """Return key -> {"values": library -> value, "ratios": other -> ratio} for one number of threads."""
    found = {}
    for scenario in scenarios:
        if threads not in scenario.threads:
            continue
        names = ["cygrad", *(other for other in others if other in scenario.others)]
        samples = (rounds_of if scenario.make else processes_of)(names, scenario, threads, rounds)
        if not samples.get("cygrad"):
            continue
        values, ratios = summary(samples)
        found[scenario.key] = {
            "values": {name: significant(scenario.value(value)) for name, value in values.items()},
            "ratios": {name: significant(ratio) for name, ratio in ratios.items()},
        }
        progress(scenario, threads, found[scenario.key])
    return found


def significant(number, digits=4):
    """Round a number for the file."""
    return float(f"{number:.{digits}g}")


def show(scenario, threads, line):
    """Show progress in one line."""
    cells = ", ".join(f"{name} {ratio:.3g}" for name, ratio in line["ratios"].items())
    ours = f"cygrad {line['values']['cygrad']:.4g} {scenario.unit}"
    print(f"{threads} thread{'s' * (threads > 1)} | {scenario.title} | {ours} | {cells}", flush=True)


def main():
    """Measure, print, and write if requested."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads of each library (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns that each library takes (default: 7)")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, metavar="KEY", help="these scenarios alone")
    parser.add_argument("--libraries", nargs="*", choices=OTHERS, default=OTHERS, help="these libraries alone")
    parser.add_argument("--write", action="store_true", help="rewrite the committed figures and the documents")
    options = parser.parse_args()
    scenarios = [SCENARIOS[key] for key in options.only or SCENARIOS]
    others, numbers = installed(options.libraries), [n for n in options.threads if n <= usable_cores()]
    about = list(circumstances([name for name in ("cygrad", *others) if "." not in name],
                               " and ".join(map(str, numbers))))
    print(*about, "", sep="\n")
    shares, begin = [share_of_a_core()], time.monotonic()
    lines = {}
    for threads in numbers:
        for key, line in compare(scenarios, others, threads, options.rounds, show).items():
            lines.setdefault(key, {})[str(threads)] = line
        shares.append(share_of_a_core())
        got = f"a busy loop got {', '.join(f'{share:.2f}' for share in shares)} of a core before, between and after"
        if options.write:
            write_lines([*about, got], lines)
    print("", table(lines), "", got, sep="\n")
    if min(shares) < BUSY:
        print("Others were at work: rows of two threads mean little.")
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
