"""What scheduling allows on many cores: recorded plans replayed by 4 to 64 members (``python -m benchmarks.schedule``).

Each plan is run on one thread with two hooks at every node, which note how long it takes and of how many pieces its
kernels' loops consist. Then the rules of a team are played through in virtual time: a free member takes the ready node
that comes first, else a piece of the first loop that has any left; whoever began a node goes on when all of its pieces
are done. A node's pieces count as one loop of equal ones. Members come a hand-over after they are called, and taking
and finishing a node holds the one lock of the queue. Memory, whose bandwidth cores share, has no part in this.
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
HAND_OVER = 12e-6             # seconds from the call for a helper that sleeps to its first piece
LOCKED = 0.5e-6               # seconds for which a node holds the queue's lock: taken, finished, the next ones entered


# ---- plans

def mlp():
    """The loss of a perceptron on a batch of 256."""
    model = perceptron(cygrad)
    return cygrad.nn.functional.cross_entropy(model(random_tensor(cygrad, 256, 784)), cygrad.arange(256) % 10)


def residual_block():
    """Two convolutions with normalization around a shortcut: 64 channels, 8 images of 28 x 28."""
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
    """Nodes in the order of the plan: seconds and pieces of each, those that wait for it, and how many it awaits."""

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
        """Of the speed-up: the longest chain of nodes, or with `cut` of their pieces, and all work shared evenly."""
        end = [0.0] * len(self.seconds)
        for place, targets in enumerate(self.targets):
            end[place] += self.seconds[place] / (self.pieces[place] if cut else 1)
            for target in targets:
                end[target] = max(end[target], end[place])
        return self.work / max(*end, self.work / members)


def record(root, rounds):
    """Run backward on one thread, with hooks at all nodes; the least time that each took."""
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


# ---- replay

def replay(plan, members, cut, locked=LOCKED):
    """Seconds until a team is through with the plan; nodes whole, or with `cut` their loops shared."""
    awaited = list(plan.awaited)
    ready = [place for place, count in enumerate(awaited) if not count]          # in order: a heap
    pieces = plan.pieces if cut else [1] * len(awaited)
    untaken, unfinished, owners = {}, {}, {}     # pieces of nodes that were begun, and who began them
    free = [(HAND_OVER if member else 0.0, member) for member in range(members)]
    idle, running = [], []                       # members that found nothing; (end of a piece, member, its node)
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
            if not unfinished[place]:            # who began it, and has waited for the others, hands its gradients on
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
    """For each number of members: (members, speed-up and its bound with whole nodes, the same with pieces, lock)."""
    for members in MEMBERS:
        cells = []
        for cut in (False, True):
            cells += [plan.work / replay(plan, members, cut), plan.bound(members, cut)]
        yield members, *cells, plan.work / replay(plan, members, True, locked=0)


def main():
    """Record, replay and print."""
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
              f"{sum(plan.pieces)} pieces. Such nodes keep the lock busy from {mean / LOCKED:.0f} members on")
        print("| members | whole nodes | bound | with pieces | bound | without a lock |\n|" + "---:|" * 6)
        for members, *cells in rows(plan):
            print(f"| {members} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
        print()


if __name__ == "__main__":
    main()
