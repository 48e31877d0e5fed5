"""
Speed-up by `cygrad.compile`, and its targets: ``python -m benchmarks.compiled``.

Runs steps of the comparison's scenarios eager, compiled, and under ``jax.jit`` and ``torch.compile`` where they are
installed, alternately; then further scenarios. ``torch.compile`` gets the step as it is and, as ``torch.func``,
gradients and update as one functional graph.
``--processor`` measures the processor time of all threads, which is less sensitive to other load. ``--fast`` also
compiles with ``mode="fast"``.
"""

import argparse
import time
from dataclasses import dataclass
from math import isnan, nan
from statistics import median

import cygrad

from .compare import installed
from .measuring import circumstances, share_of_a_core, undisturbed_steps
from .networks import training_step, transformer_block
from .scenarios import COMPILED, EVERY, FAST, TORCH_COMPILED
from .turns import rounds_of

TINY = (10, 16, 4)
COMPILERS = ("jax.jit", TORCH_COMPILED, "torch.func")


@dataclass(frozen=True)
class Goal:
    """A target: time of a compiled step, speed-up over eager, or time of the other library relative to ours."""

    key: str
    microseconds: float | None = None
    eager: float | None = None
    jax: float | None = None

    def reached(self, ours, eager, jax):
        """Return whether the target is met, or None if the other library is missing."""
        if self.jax is not None and jax is None:
            return None
        return ((self.microseconds is None or ours * 1e6 <= self.microseconds)
                and (self.eager is None or eager >= self.eager) and (self.jax is None or jax >= self.jax))

    def __str__(self):
        bounds = {"≤ {:g} µs": self.microseconds, "≥ {:g} × eager": self.eager, "≥ {:g} × jax.jit": self.jax}
        return ", ".join(text.format(bound) for text, bound in bounds.items() if bound is not None)


GOALS = [
    Goal("mlp-tiny", microseconds=4),
    Goal("mlp-tiny-adam", microseconds=5),
    Goal("rnn", eager=1.5, jax=1),
    Goal("lstm", eager=1.5, jax=1),
    *[Goal(f"mixed-1e{power}", jax=1) for power in range(3, 8)],
    Goal("mlp-small", jax=1.1),
    Goal("hvp", jax=1),
    Goal("hessian", microseconds=100),
    Goal("mixture", jax=1),
    Goal("k-means", jax=1),
    Goal("llsq", jax=1),
    Goal("heat-1e3", jax=1),
    Goal("heat-1e5", jax=1),
    Goal("block-128", jax=1),
]


def rows(goal, rounds, clock, fast, compilers):
    """Return the lines of a target, one per mode: times of a compiled step, and relative times of others."""
    scenario, modes = EVERY[goal.key], [COMPILED, FAST] if fast else [COMPILED]
    compilers = [compiler for compiler in compilers if compiler != "jax.jit" or compiler in scenario.others]
    samples = rounds_of(["cygrad", *modes, *installed(compilers)], scenario, 1, rounds, clock)
    for ours in map(samples.get, modes):
        eager, *others = (median(theirs / own for theirs, own in zip(samples[name], ours, strict=True))
                          if name in samples else None for name in ("cygrad", *COMPILERS))
        said = {None: "", True: "yes", False: "no"}[goal.reached(median(ours), eager, others[0])]
        title = scenario.title if ours is samples[COMPILED] else '... with mode="fast"'
        shown = " | ".join(["" if other is None else f"{other:.2f}" for other in others])
        yield f"| {title} | {median(ours) * 1e6:,.4g} | {eager:.2f} | {shown} | {goal} | {said} |"


def threads_ratio(rounds, optimizer="SGD", each=0):
    """
    Return the steps per second of two Python threads, each with a compiled tiny model, relative to one thread.

    Counts undisturbed moments only, because on a busy machine two threads seldom have a core each. `each`: steps per
    call of `step.each`.
    """
    cygrad.set_num_threads(1)
    steps = [cygrad.compile(training_step(cygrad, 8, optimizer, TINY)) for _ in range(2)]
    for step in steps * 5:
        step()
    if each:
        steps = [lambda step=step, calls=[()] * each: step.each(calls) for step in steps]
    calls = max(1, 100 // max(each, 1))
    ratios = [undisturbed_steps(steps, 3.0, calls) / undisturbed_steps(steps[:1], 0.5, calls) for _ in range(rounds)]
    return median([ratio for ratio in ratios if not isnan(ratio)] or [nan])


def long_loop(steps):
    """-> function: forward and backward of a loop of small operations."""
    weight, start = cygrad.ones(14, requires_grad=True), cygrad.ones(14)

    def step():
        x = start
        for _ in range(steps):
            x = cygrad.sigmoid(x * weight)
        return cygrad.autograd.grad(x.sum(), weight)
    return step


def recording_ratio(rounds, step):
    """Return the time of tracing and lowering a step, in eager steps."""
    ratios = []
    step()
    for _ in range(rounds):
        begin = time.perf_counter()
        step()
        eager = time.perf_counter() - begin
        begin = time.perf_counter()
        cygrad.compile(step)()
        ratios.append((time.perf_counter() - begin) / eager)
    return median(ratios)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns that each takes (default: 5)")
    parser.add_argument("--only", default="", help="scenarios whose key contains this")
    parser.add_argument("--processor", action="store_true", help="measure processor time")
    parser.add_argument("--compilers", nargs="*", default=COMPILERS, choices=COMPILERS,
                        help="other compilers (default: all)")
    parser.add_argument("--fast", action="store_true", help='measure mode="fast" too')
    options = parser.parse_args()
    print(*circumstances(["cygrad", "jax", "torch"], 1), "", sep="\n")
    print(f"| one thread each | compiled, µs | eager / it | {' / it | '.join(COMPILERS)} / it | wanted | reached |")
    print("|---|---:|---:|---:|---:|---:|---|---|")
    for goal in GOALS:
        if options.only in goal.key:
            for line in rows(goal, options.rounds, "process_time" if options.processor else "perf_counter",
                             options.fast, options.compilers):
                print(line, flush=True)
    if not options.only:
        for optimizer in ("SGD", "Adam"):
            print(f"\nMLP 10-16-4, {optimizer}: steps/s of two Python threads / one: {threads_ratio(5, optimizer):.2f}"
                  f", 100 steps at a time by `each`: {threads_ratio(5, optimizer, 100):.2f} (≥ 1.8 wanted)")
        block = recording_ratio(5, transformer_block(cygrad, 128, 64))
        print(f"Recording and lowering of a transformer block: {block:.1f} eager steps (≤ 20 wanted)")
        for steps in (100, 1000, 10_000):
            ratio = recording_ratio(3, long_loop(steps))
            print(f"... of a loop of {steps:,} steps: {ratio:.0f} eager steps (≤ 30 wanted)")
    print(f"\nA busy loop gets {share_of_a_core():.2f} of a core.")


if __name__ == "__main__":
    main()
