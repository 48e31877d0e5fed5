"""
Scenarios of the comparison, and targets: time or memory of other libraries relative to cygrad.

`make` of a scenario takes a library and returns a function to time, or a pair of a preparation and that function.
Scenarios without `make` measure whole processes: `measure` is the argument of `turns.measure`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .networks import (
    clustering_gradient,
    encoder_layer,
    full_hessian,
    heat_gradient,
    hessian_times_vector,
    least_squares_gradient,
    lstm,
    mixture_gradient,
    optimizer_step,
    small_parameters,
    tanh_network,
    training_step,
    transformer_block,
)
from .workloads import (
    CHAIN,
    GRAPHS,
    OTHERS,
    Graph,
    elementwise_chain,
    forward,
    forward_and_backward,
    forward_under,
    graph_backward,
    mixed_expression,
)

TENSORS, EAGER = ("torch",), ("torch", "jax", "autograd")
NODES = 10_000


@dataclass(frozen=True)
class Scenario:
    """A line of the comparison."""

    key: str
    title: str
    make: Callable | None = None
    targets: Mapping[str, float] = field(default_factory=dict)     # other -> ratio
    others: tuple = OTHERS
    unit: str = "µs"
    per: int = 1                                                   # operations or nodes in one step
    measure: str = ""
    threads: tuple = (1, 2)

    def value(self, seconds):
        """Convert seconds of a step, or bytes, to the displayed unit."""
        scale = {"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1, "MiB": 2 ** -20, "bytes": 1}[self.unit]
        return seconds * scale / self.per


def operations():
    """Yield scenarios of per-operation overhead."""
    tensors = "4 elements, per operation: "
    options = {"unit": "ns", "per": CHAIN, "others": EAGER}
    yield Scenario("op-backward", tensors + "forward and backward", forward_and_backward,
                   {"torch": 10, "jax": 20, "autograd": 20}, **options)
    yield Scenario("op-no-grad", tensors + "forward, `no_grad`", forward_under("no_grad"), {"torch": 8}, **options)
    options["others"] = TENSORS
    yield Scenario("op-inference", tensors + "forward, `inference_mode`", forward_under("inference_mode"), **options)
    yield Scenario("op-recorded", tensors + "forward, recorded", forward, **options)


def graph_build(lib):
    """Return the preparation, and the forward of a chain."""
    graph = Graph(lib, "chain", NODES)
    return graph.destroy, graph.build


def graph_end(lib):
    """Return the preparation, and the destruction of a chain."""
    graph = Graph(lib, "chain", NODES)
    return graph.build, graph.destroy


def graphs():
    """Yield scenarios of the engine."""
    options = {"unit": "ns", "per": NODES}
    for shape in GRAPHS:
        # jax compiles the stack of all results for minutes, and HIPS autograd takes quadratic time
        others = TENSORS if shape == "fan-out" else EAGER
        yield Scenario(f"graph-{shape}", f"engine, {shape} of 10⁴ nodes: backward, per node",
                       graph_backward(shape, NODES), {"torch": 10}, others, **options)
    yield Scenario("graph-build", "chain of 10⁴ nodes: build, per node", graph_build, others=TENSORS, **options)
    yield Scenario("graph-end", "chain of 10⁴ nodes: drop, per node", graph_end, others=TENSORS, **options)
    for power, raised in ((5, "⁵"), (6, "⁶")):
        yield Scenario(f"graph-chain-1e{power}", f"engine, chain of 10{raised} nodes: backward, per node",
                       graph_backward("chain", 10 ** power), {"torch": 10}, TENSORS, unit="ns", per=10 ** power)


def programs():
    """Yield scenarios of whole programs and large tensors."""
    yield Scenario("rnn", "tanh RNN, 100 steps × 64, batch 16", tanh_network, {"torch": 3})
    yield Scenario("lstm", "LSTM of elementary operators, 50 steps × 64, batch 16", lstm, {"torch": 3})
    wanted = {3: {"torch": 6}, 4: {}, 5: {"torch": 2}, 6: {"torch": 2}, 7: {"torch": 3, "jax.jit": 1}}
    for power, targets in wanted.items():
        def make(lib, size=10 ** power):
            return elementwise_chain(lib, size)
        yield Scenario(f"chain-1e{power}", f"element-wise chain, 10{'⁰¹²³⁴⁵⁶⁷'[power]} float32, forward and backward",
                       make, targets)
    yield Scenario("mlp-tiny", "MLP 10-16-4, batch 8: SGD step", lambda lib: training_step(lib, 8, sizes=(10, 16, 4)),
                   {"torch": 6})
    yield Scenario("mlp-small", "MLP 784-256-128-10, batch 64: SGD step", training_step, {"torch": 2})
    yield Scenario("mlp-large", "MLP 1024-4096-1024, batch 256: SGD step",
                   lambda lib: training_step(lib, 256, sizes=(1024, 4096, 1024)), {"torch": 1})
    yield Scenario("block-128", "transformer block, d = 128, 64 steps, batch 4",
                   lambda lib: transformer_block(lib, 128, 64), {"torch": 1.8})
    yield Scenario("block-512", "transformer block, d = 512, 128 steps, batch 4",
                   lambda lib: transformer_block(lib, 512, 128), {"torch": 1.1})
    yield Scenario("layer-128", "`nn.TransformerEncoderLayer`, d = 128, 64 steps, batch 4",
                   lambda lib: encoder_layer(lib, 128, 64), others=TENSORS)
    yield Scenario("hvp", "Hessian of the MLP (batch 64) times a vector, by two backwards", hessian_times_vector,
                   {"torch": 2.5})
    yield Scenario("hessian", "full Hessian of 50 inputs", full_hessian, {"torch": 5})
    for kind in ("SGD", "Adam"):
        yield Scenario(f"step-{kind.lower()}", f"{kind} step, 100 parameters of 1,000",
                       lambda lib, kind=kind: optimizer_step(lib, small_parameters(lib), kind), {"torch": 5}, TENSORS)


def processes():
    """Yield scenarios of whole processes."""
    yield Scenario("import-time", "import, NumPy included", None, {"torch": 10}, EAGER, "ms", measure="import_time",
                   threads=(1,))
    yield Scenario("import-memory", "resident after import", None, {"torch": 5}, EAGER, "MiB", measure="import_memory",
                   threads=(1,))
    yield Scenario("peak", "MLP 50 × 1024, batch 512: most memory of the process", None, {"torch": 1 / 0.9}, TENSORS,
                   "MiB", measure="peak")
    yield Scenario("peak-beyond-import", "the same, without what the import took", None, {}, TENSORS, "MiB",
                   measure="peak_beyond_import")
    yield Scenario("node-memory", "chain of 10⁶ nodes: memory, per node", None, {}, TENSORS, "bytes",
                   measure="node_memory", threads=(1,))
    yield Scenario("growth", "growth of the process over 20,000 training steps", None, {}, TENSORS, "MiB",
                   measure="growth", threads=(1,))


def compiled():
    """Yield scenarios for `benchmarks.compiled` only."""
    yield Scenario("mlp-tiny-adam", "MLP 10-16-4, batch 8: Adam step",
                   lambda lib: training_step(lib, 8, "Adam", (10, 16, 4)), others=TENSORS)
    for power in range(3, 8):
        yield Scenario(f"mixed-1e{power}", f"mixed expression, 10{'⁰¹²³⁴⁵⁶⁷'[power]} float32, forward and backward",
                       lambda lib, size=10 ** power: mixed_expression(lib, size))
    yield Scenario("mixture", "gradient of a Gaussian mixture, K = 25, D = 32, 1,000 points", mixture_gradient)
    yield Scenario("k-means", "gradient of k-means, K = 10, D = 8, 1,000 points", clustering_gradient)
    yield Scenario("llsq", "gradient of linear least squares, 1,000 × 64", least_squares_gradient)
    for power in (3, 5):
        yield Scenario(f"heat-1e{power}", f"gradient of a heat equation, 10{'⁰¹²³⁴⁵'[power]} points, 20 steps",
                       lambda lib, size=10 ** power: heat_gradient(lib, size))


# cygrad with compiled steps: bit-identical to eager, or with sums in any order. PyTorch with a compiled step.
COMPILED, FAST, TORCH_COMPILED = "cygrad.compile", "cygrad.compile, fast", "torch.compile"
SCENARIOS = {scenario.key: scenario for group in (operations, graphs, programs, processes) for scenario in group()}
EVERY = {**SCENARIOS, **{scenario.key: scenario for scenario in compiled()}}
