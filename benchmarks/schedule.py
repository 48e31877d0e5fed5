"""Simulate the scheduling of backward plans on 4 to 64 threads: ``python -m benchmarks.schedule``.

Each plan runs on one thread with hooks that measure the time and the chunks of each node. The simulation follows the
rules of a team in virtual time: a free member takes the first ready node, else a chunk of the first loop; the owner of
a node continues when all of its chunks are done. The chunks of a node count as one loop of equal chunks. Members arrive
HAND_OVER after they are called, and taking and finishing a node locks the queue. Memory bandwidth is ignored.
"""

import argparse
import heapq
import time
from collections import defaultdict
from statistics import median

import cygrad
from benchmarks.measuring import processor
from benchmarks.networks import perceptron, transformer_block
from benchmarks.threads import branches
from benchmarks.workloads import random_tensor
from cygrad._core.threads.parallel import chunks_run
from cygrad.autograd.graph import backward_order

MEMBERS = (4, 8, 16, 32, 64)
HAND_OVER = 12e-6             # seconds from the call of a sleeping helper to its first chunk
LOCKED = 0.5e-6               # seconds for which a node locks the queue


# ---- plans

def mlp():
    """Return the loss of a perceptron on a batch of 256."""
    model = perceptron(cygrad)
    return cygrad.nn.functional.cross_entropy(model(random_tensor(cygrad, 256, 784)), cygrad.arange(256) % 10)


def residual_block():
    """Return the loss of a residual block: 64 channels, 8 images of 28 x 28."""
    nn, image = cygrad.nn, random_tensor(cygrad, 8, 64, 28, 28, requires_grad=True)
    inner = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64))
    return cygrad.relu(inner(image) + image).sum()


PLANS = {
    "MLP, batch 256": mlp,
    "transformer block, d = 256, 128 steps": lambda: transformer_block(cygrad, 256, 128).loss(),
    "ResNet block, 64 channels": residual_block,
    "8 branches of 512 × 512": lambda: branches(cygrad).func.__self__,
}


class Plan:
    """Nodes in the order of the plan: seconds, chunks, dependents, and number of dependencies."""

    def __init__(self, nodes, times, pieces):
        places = {node: place for place, node in enumerate(nodes)}
        self.seconds, self.pieces = times, pieces
        self.targets = [[places[target] for target, _ in node.next_functions if target in places] for node in nodes]
        self.awaited = [0] * len(nodes)
        for targets in self.targets:
            for target in targets:
                self.awaited[target] += 1

    @property
    def work(self):
        return sum(self.seconds)

    def bound(self, members, cut):
        """Return the bound of the speed-up by the longest chain of nodes (`cut`: of chunks) and the total work."""
        end = [0.0] * len(self.seconds)
        for place, targets in enumerate(self.targets):
            end[place] += self.seconds[place] / (self.pieces[place] if cut else 1)
            for target in targets:
                end[target] = max(end[target], end[place])
        return self.work / max(*end, self.work / members)


def record(root, rounds):
    """Run backward on one thread with hooks at all nodes; return the minimum time of each."""
    nodes = backward_order(root)
    times, pieces, began = defaultdict(list), {}, [0.0, 0]

    def watch(node):
        def before(gradients):
            began[:] = chunks_run(), time.perf_counter()

        def after(inputs, outputs):
            times[node].append(time.perf_counter() - began[1])
            pieces[node] = max(1, chunks_run() - began[0])
        return node.register_prehook(before), node.register_hook(after)

    handles = [handle for node in nodes for handle in watch(node)]
    with cygrad.threads(1):
        for _ in range(rounds):
            root.backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    return Plan(nodes, [min(times[node]) for node in nodes], [pieces[node] for node in nodes])


# ---- simulation

def replay(plan, members, cut, locked=LOCKED):
    """Return the seconds that a team needs for the plan; `cut`: members share loops."""
    awaited = list(plan.awaited)
    ready = [place for place, count in enumerate(awaited) if not count]          # in order: a heap
    pieces = plan.pieces if cut else [1] * len(awaited)
    untaken, unfinished, owners = {}, {}, {}     # chunks of started nodes, and their owners
    free = [(HAND_OVER if member else 0.0, member) for member in range(members)]
    idle, running = [], []                       # idle members; (end of a chunk, member, node)
    now = lock_free = 0.0

    def take(place, member, moment):
        untaken[place] -= 1
        heapq.heappush(running, (moment + plan.seconds[place] / pieces[place], member, place))

    def locking(moment):
        nonlocal lock_free
        lock_free = max(moment, lock_free) + locked / 2
        return lock_free

    while free or running:
        if free and (not running or free[0][0] <= running[0][0]):
            now, member = heapq.heappop(free)
            shared = next((place for place, left in untaken.items() if left), None)
            if ready:
                place = heapq.heappop(ready)
                untaken[place] = unfinished[place] = pieces[place]
                owners[place] = member
                take(place, member, locking(now))
            elif shared is not None:
                take(shared, member, now)
            else:
                idle.append(member)
                continue
        else:
            now, member, place = heapq.heappop(running)
            unfinished[place] -= 1
            if member != owners[place]:
                heapq.heappush(free, (now, member))
            elif untaken[place]:
                take(place, member, now)
            if not unfinished[place]:            # the owner passes the gradients on
                del untaken[place]
                now = locking(now)
                for target in plan.targets[place]:
                    awaited[target] -= 1
                    if not awaited[target]:
                        heapq.heappush(ready, target)
                heapq.heappush(free, (now, owners[place]))
        if ready or any(untaken.values()):
            for member in idle:
                heapq.heappush(free, (now, member))
            idle.clear()
    return now


def rows(plan):
    """Return (members, speed-up and bound with whole nodes, speed-up and bound with chunks, lock) per team size."""
    for members in MEMBERS:
        cells = []
        for cut in (False, True):
            cells += [plan.work / replay(plan, members, cut), plan.bound(members, cut)]
        yield members, *cells, plan.work / replay(plan, members, True, locked=0)


def main():
    """Measure, simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="recorded backward passes of each plan (default: 15)")
    parser.add_argument("--only", default="", help="plans whose title contains this")
    options = parser.parse_args()
    print(f"{processor()}; recorded on one thread; the queue's lock is held for {LOCKED * 1e6:g} µs for each node\n")
    for title, make in PLANS.items():
        if options.only not in title:
            continue
        plan = record(make(), options.rounds)
        mean = plan.work / len(plan.seconds)
        print(f"{title}: {len(plan.seconds)} nodes of {mean * 1e6:.0f} µs, median {median(plan.seconds) * 1e6:.0f}; "
              f"{sum(plan.pieces)} pieces. Such nodes keep the queue's lock busy from {mean / LOCKED:.0f} members on")
        print("| members | whole nodes | bound | with pieces | bound | without a lock |\n|" + "---:|" * 6)
        for members, *cells in rows(plan):
            print(f"| {members} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
        print()


if __name__ == "__main__":
    main()
