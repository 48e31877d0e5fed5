"""
Random functions that cover the contract of `compile`: reads, writes, draws, sharing and results.

Each case is a plan. The plan is run twice, in two worlds that begin alike: once by the function itself, once by the
function compiled. After each call everything that a program could see is compared bit for bit.
"""

import contextlib
import copy
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import cygrad
from cygrad import nn, optim
from cygrad.distributions import Bernoulli, Laplace, Normal

OPTIMIZERS = {
    "SGD": (optim.SGD, {"lr": 0.1}), "momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "Adam": (optim.Adam, {"lr": 0.01}), "AdamW": (optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    "RMSprop": (optim.RMSprop, {"lr": 0.01})}
OPTIONS = {"lr": 0.05, "momentum": None, "maximize": True, "weight_decay": 0.1, "betas": (0.5, 0.7), "eps": 1e-3,
           "nesterov": True, "amsgrad": True}
SIZE = 4
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, ZeroDivisionError)


class Slots:
    __slots__ = ("factor",)


class World:
    """Variables that a function reads and writes besides its arguments."""

    def __init__(self, seed, choice):
        generator = cygrad.Generator().manual_seed(seed)

        def numbers(*shape):
            return cygrad.randn(*shape, generator=generator)

        class Config:
            scale = 1.5

        def helper(x, shift=0.5):
            return x * helper.gain + shift

        helper.gain = 1.25
        self.config, self.helper, self.slots = Config, helper, Slots()
        self.slots.factor = 0.75
        self.weight = numbers(SIZE, SIZE).requires_grad_()
        self.bias = numbers(SIZE).requires_grad_()
        self.buffer = numbers(SIZE, SIZE)
        self.index = cygrad.tensor([1, 0, 3, 3])
        self.buffer.tag = 0.5
        self.options = {"k": 2.0, "n": 0}
        self.items = [self.weight, 1.5, self.buffer]
        self.log = []
        cygrad.manual_seed(seed)
        kinds = [lambda: nn.Linear(SIZE, SIZE), nn.Tanh, lambda: nn.Dropout(0.5), lambda: nn.LayerNorm(SIZE),
                 lambda: nn.BatchNorm1d(SIZE), nn.GELU, lambda: nn.Dropout1d(0.3), lambda: nn.GRUCell(SIZE, SIZE),
                 lambda: nn.RNNCell(SIZE, SIZE), lambda: nn.Conv1d(SIZE, SIZE, 3, padding=1), nn.PReLU, nn.RReLU,
                 lambda: nn.GroupNorm(2, SIZE), lambda: nn.Softmax(-1), lambda: nn.LogSoftmax(0), nn.Softplus,
                 lambda: nn.RMSNorm(SIZE), lambda: nn.MaxPool1d(3, 1, 1), lambda: nn.AlphaDropout(0.2), nn.Identity,
                 lambda: nn.utils.parametrizations.weight_norm(nn.Linear(SIZE, SIZE)),
                 lambda: nn.Sequential(nn.Linear(SIZE, SIZE), nn.Mish())]
        self.module = nn.Sequential(*[choice.choice(kinds)() for _ in range(choice.randrange(1, 4))])
        cls, options = OPTIMIZERS[choice.choice([*OPTIMIZERS])]
        self.parameters = [self.weight, self.bias, *self.module.parameters()]
        self.optimizer = cls(self.parameters, **options)
        self.arguments = [numbers(SIZE, SIZE), numbers(2 * SIZE, SIZE)]


def step_of(kind, first, second):
    """One part of a function: called with the world and the tensors so far, it adds to them."""
    def pick(made, number):
        return made[number % len(made)]

    def apply(world, made):
        x, y = pick(made, first), pick(made, second)
        if kind == "product":
            made.append(x @ y / SIZE)
        elif kind == "elementwise":
            made.append((x * y).tanh() + x.sin())
        elif kind == "options":
            made.append(x * world.options["k"])
        elif kind == "class":
            made.append(x * world.config.scale)
        elif kind == "helper":
            made.append(world.helper(x))
        elif kind == "slots":
            made.append(x - world.slots.factor)
        elif kind == "items":
            made.append(x * world.items[1] + world.items[0])
        elif kind == "tag":
            made.append(x * world.buffer.tag)
        elif kind == "weight":
            made.append(x @ world.weight + world.bias)
        elif kind == "module":
            made.append(world.module(x))
        elif kind == "dropout":
            made.append(nn.functional.dropout(x, 0.5))
        elif kind == "noise":
            made.append(x + cygrad.randn(SIZE, SIZE))
        elif kind == "filled":
            made.append(cygrad.zeros(SIZE, SIZE).add_(x.detach()) * y)
        elif kind == "uniform":
            made.append(cygrad.empty(SIZE, SIZE).uniform_() * x)
        elif kind == "in place":
            own = x * 1.5
            own.mul_(y.detach())
            made.append(own)
        elif kind == "view":
            own = x * 1.25
            own[:, 1:3].sub_(y[:, :2].detach())
            made.append(own)
        elif kind == "transposed":
            made.append(x.t())
        elif kind == "zeros like":
            made.append(cygrad.zeros_like(x.t()) + y)
        elif kind == "argument":
            with cygrad.no_grad():
                made[0].mul_(0.5)
        elif kind == "buffer":
            with cygrad.no_grad():
                world.buffer.add_(x.detach())
        elif kind == "append":
            world.log.append(1.0)
        elif kind == "count":
            world.options["n"] += 1
        elif kind == "identity":
            made.append(x * (2.0 if x is world.buffer else 3.0))
        elif kind == "second order":
            gradient, = cygrad.autograd.grad((world.weight * x).tanh().sum(), world.weight, create_graph=True)
            made.append(gradient * y)
        elif kind == "train":
            world.optimizer.zero_grad()
            (made[-1].square().mean() + (world.weight * y).mean()).backward()
            world.optimizer.step()
        elif kind == "accumulate":
            (world.weight * x).sum().backward()
        elif kind == "gradient":
            made.append(x + world.weight.grad if world.weight.grad is not None else x * 1)
        elif kind == "sorted":
            made.append(x.sort(dim=-1).values + y.cumsum(0))
        elif kind == "where":
            made.append(cygrad.where(x > y, x * 1.5, y))
        elif kind == "masked":
            made.append(x.masked_fill(y > 0.5, -0.25))
        elif kind == "mask":
            mask = (x > 0) ^ (y > 0)
            made.append(x * mask + (mask | (x > 1)).sum())
        elif kind == "assigned":
            own = x * 1.25
            own[y.detach() > 0] = 0.75
            made.append(own)
        elif kind == "bfloat16":
            made.append((x.bfloat16() * y.bfloat16()).float() + x)
        elif kind == "float16":
            made.append(x.half().float() @ y)
        elif kind == "complex":
            z = cygrad.complex(x, y)
            made.append((z * z.conj()).real + (z * 2).imag)
        elif kind == "rsample":
            made.append(Normal(x, 0.5, validate_args=False).rsample())
        elif kind == "log_prob":
            made.append(Laplace(y.detach(), 1.5, validate_args=False).log_prob(x))
        elif kind == "sample":
            made.append(Bernoulli(logits=x, validate_args=False).sample() * y)
        elif kind == "gathered":
            made.append(x.gather(1, y.detach().argsort(1)))
        elif kind == "looked up":
            made.append(world.weight[world.index] + x)
        elif kind == "divided":
            made.append(x * (7 // (world.index - 9)))
        elif kind == "mode":
            with [cygrad.no_grad, cygrad.enable_grad, cygrad.inference_mode][first % 3]():
                inside = x * 1.5 + world.weight
            made.append(inside * 2 if first % 3 == 1 else inside.detach().clone() * y)
        elif kind == "switched":
            before, on = cygrad.get_default_dtype(), cygrad.is_grad_enabled()
            cygrad.set_default_dtype(cygrad.float64)
            cygrad.set_grad_enabled(first % 2 == 0)
            own = (cygrad.ones(SIZE) * 0.1).float()
            cygrad.set_default_dtype(before)
            made.append(x * own)
            cygrad.set_grad_enabled(on)
        elif kind == "device":
            with cygrad.device("cpu"):
                made.append(x + cygrad.full((SIZE,), 0.5))
        elif kind == "autocast":
            with cygrad.autocast("cpu", enabled=first % 2 == 0):
                made.append((x @ y).float() / SIZE)
        elif kind == "partial":
            own = (world.weight * x).tanh()
            own[first % SIZE].sum().backward(retain_graph=True, inputs=[world.weight])
            made.append(own * y)
    return apply


KINDS = ["product", "elementwise", "options", "class", "helper", "slots", "items", "tag", "weight", "module", "dropout",
         "noise", "filled", "uniform", "in place", "view", "transposed", "zeros like", "argument", "buffer", "identity",
         "second order", "gradient", "sorted", "product", "elementwise", "weight", "module", "where", "masked", "mask",
         "complex", "rsample", "log_prob", "gathered", "looked up", "divided", "mode", "switched", "device"]
RARE = ["train", "accumulate", "append", "count", "train", "assigned", "bfloat16", "float16", "sample", "autocast",
        "partial", "partial"]
RESULTS = ["last", "pair", "twice", "detached", "dict", "argument", "loss", "three", "view", "number", "views",
           "linked", "pieces"]
CHANGES = ["nothing", "nothing", "nothing", "options", "class", "gain", "slots", "items", "tag", "mode", "lr",
           "momentum", "grad none", "grad alias", "freeze", "default", "parameter", "maximize", "order", "index",
           "weight_decay", "betas", "eps", "nesterov", "amsgrad", "reload", "zero grad"]
CALLS = ["plain", "plain", "plain", "same", "buffer", "weight data", "overlapping", "strided", "gradient", "leaf",
         "history", "no grad", "thread", "inference", "float64", "autocast", "anomaly", "outdated"]
BACKWARDS = ["none", "all", "all", "first", "last", "twice", "create graph", "changed between", "hook",
             "by results", "hooks of results", "thread", "outer nodes", "part", "inputs", "hooks and graph"]


def result_of(kind, made):
    """What the function returns."""
    last, other = made[-1], made[len(made) // 2]
    if kind == "pair":
        return last, other * 2
    if kind == "twice":
        return last, last
    if kind == "detached":
        return last, last.detach()
    if kind == "dict":
        return {"a": last, "b": [other.exp(), 3.0]}
    if kind == "argument":
        return last, made[0]
    if kind == "loss":
        return last.square().mean()
    if kind == "three":
        return last.sum(), other.tanh(), last.sin()
    if kind == "view":
        return last[1:]
    if kind == "linked":
        return last, last.exp(), (last * other).sum()
    if kind == "pieces":
        cosine, pieces = last.cos(), (last[2:], other.t()[1:], last[1:3], last.chunk(2))
        return pieces[3], cosine, pieces[1], pieces[2], pieces[0]
    if kind == "views":
        return last.t(), last, [last[1:], other[0]]
    return (last, 4.5) if kind == "number" else last


class Case:
    """One plan, drawn from a seed."""

    def __init__(self, seed):
        self.seed, choice = seed, random.Random(seed)
        kinds = [choice.choice(KINDS) for _ in range(choice.randrange(2, 7))]
        if choice.random() < 0.4:
            kinds.insert(choice.randrange(1, len(kinds) + 1), choice.choice(RARE))
        self.kinds = [(kind, choice.randrange(100), choice.randrange(100)) for kind in kinds]
        self.result = choice.choice(RESULTS)
        calls = [choice.choice(CALLS)] * 2 + [choice.choice(CALLS) for _ in range(3)]
        changes = ["nothing"] * 2 + [choice.choice(CHANGES) for _ in range(3)]
        self.calls = [(change, call, choice.choice(BACKWARDS), choice.randrange(1000))
                      for change, call in zip(changes, calls, strict=True)]

    def function(self, world):
        """The function of this plan in a world."""
        steps, result = [step_of(*kind) for kind in self.kinds], self.result

        def function(x, y):
            made = [x, y]
            for step in steps:
                step(world, made)
            return result_of(result, made)

        return function

    def world(self):
        return World(self.seed, random.Random(self.seed + 1))


def change(world, kind, number):
    """What happens between two calls."""
    value = 0.5 + number % 7 / 4
    if kind == "options":
        world.options["k"] = value
    elif kind == "class":
        world.config.scale = value
    elif kind == "gain":
        world.helper.gain = value
    elif kind == "slots":
        world.slots.factor = value
    elif kind == "items":
        world.items[1] = value
    elif kind == "tag":
        world.buffer.tag = value
    elif kind == "mode":
        world.module.train(not world.module.training)
    elif kind in OPTIONS:
        for group in world.optimizer.param_groups:
            momentum = group.get("momentum", 0)
            if kind in group and not (kind == "amsgrad" and world.optimizer.state) and (
                    momentum if kind == "nesterov" else kind != "momentum" or not group.get("nesterov")):
                group[kind] = 0.9 - momentum if kind == "momentum" else OPTIONS[kind]
    elif kind == "reload":
        world.optimizer.load_state_dict(copy.deepcopy(world.optimizer.state_dict()))
        world.module.load_state_dict({name: value * 0.5 for name, value in world.module.state_dict().items()
                                      if value.is_floating_point()}, strict=False)
    elif kind == "zero grad":
        world.optimizer.zero_grad(set_to_none=number % 2 == 0)
    elif kind == "grad none":
        world.weight.grad = None
    elif kind == "grad alias":
        world.weight.grad = world.buffer.detach()
    elif kind == "freeze":
        world.bias.requires_grad_(not world.bias.requires_grad)
    elif kind == "default":
        world.helper.__defaults__ = (value,)
    elif kind == "parameter":
        with cygrad.no_grad():
            world.weight.mul_(value)
    elif kind == "index":
        world.index[number % 4] = 9 if world.index.max() < 9 else 2
    elif kind == "order":
        world.options["k"] = world.options.pop("k")


def arguments(world, kind, number):
    """The arguments of a call."""
    x, y = world.arguments[0] + number % 3, world.arguments[0] * 0.5
    if kind == "same":
        return x, x
    if kind == "buffer":
        return world.buffer, y
    if kind == "weight data":
        return world.weight.detach(), y
    if kind == "overlapping":
        memory = world.arguments[1] * 1
        return memory[:SIZE], memory[1:SIZE + 1]
    if kind == "strided":
        return world.arguments[1][::2], y.t()
    if kind == "gradient":
        return x, y if world.weight.grad is None else world.weight.grad
    if kind == "leaf":
        return x.requires_grad_(), y
    if kind == "outdated":
        memory = world.arguments[1] * 1
        view = memory[::2]
        if number % 2:
            memory.mul_(y.clone().requires_grad_().repeat(2, 1))
        return view, y
    if kind == "history":
        return (x * world.weight.detach().clone().requires_grad_()), y
    return x, y


def tensors_of(result):
    """The tensors of a result, in order."""
    if isinstance(result, cygrad.Tensor):
        return [result]
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
    return [tensor for part in parts for tensor in tensors_of(part)]


def seen(tensor):
    """Return all observable properties of a tensor."""
    if tensor is None:
        return None
    elements = np.ascontiguousarray(tensor.detach().numpy()).tobytes()
    return (elements, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad, tensor.is_leaf,
            tensor.is_inference() or tensor._version)


@contextlib.contextmanager
def float64():
    cygrad.set_default_dtype(cygrad.float64)
    try:
        yield
    finally:
        cygrad.set_default_dtype(cygrad.float32)


MODES = {"no grad": cygrad.no_grad, "inference": cygrad.inference_mode, "float64": float64,
         "autocast": lambda: cygrad.autocast("cpu"), "anomaly": cygrad.autograd.detect_anomaly}


def in_thread(call):
    """Return the result of a call in another thread, or raise its error."""
    with ThreadPoolExecutor(1, "call") as pool:           # errors name threads
        return pool.submit(call).result()


def run(world, function, call):
    """Make one call with its setup and cleanup; return everything observable."""
    kind_of_change, kind_of_call, backward, number = call
    change(world, kind_of_change, number)
    found = []
    given = arguments(world, kind_of_call, number)
    leaf = given[0] if given[0].is_leaf else None
    cygrad.manual_seed(number)
    try:
        with MODES.get(kind_of_call, contextlib.nullcontext)():
            result = in_thread(lambda: function(*given)) if kind_of_call == "thread" else function(*given)
        tensors = tensors_of(result)
        found += [seen(tensor) for tensor in tensors]
        every = [*tensors, *given, *world.parameters, world.buffer]
        found.append([[a is b for b in every] for a in tensors])
        found.append(repr(result).count("tensor") if not tensors else type(result))
    except ERRORS as error:
        found.append((type(error), str(error)))
        tensors = []
    try:
        found += outside(world, backward, tensors, given)
    except ERRORS as error:
        return [*found, type(error)]     # a backward that fails may have got to some leaves
    state = [world.optimizer.state[p] for p in world.parameters if p in world.optimizer.state]
    found += [seen(tensor) for tensor in (*given, *world.parameters, world.buffer, *world.module.buffers())]
    found += [seen(tensor.grad) for tensor in (*world.parameters, leaf) if tensor is not None]
    found += [{name: seen(value) if isinstance(value, cygrad.Tensor) else value for name, value in entry.items()}
              for entry in state]
    found += [dict(world.options), list(world.log), cygrad.get_rng_state().tolist()]
    return found


def outside(world, kind, tensors, given):
    """Run a backward outside of the function; return its results."""
    roots = [tensor for tensor in tensors if tensor.requires_grad and tensor.grad_fn is not None]
    inputs = [tensor for tensor in (*world.parameters, *given) if tensor.requires_grad]
    if not roots or kind == "none":
        return []
    if kind in ("first", "last"):
        roots = roots[:1] if kind == "first" else roots[-1:]
    if kind == "changed between":
        with cygrad.no_grad():
            world.weight.mul_(1.5)
            world.options["k"] += 1.0
            world.module.train(not world.module.training)
    if kind == "hook":
        roots[0].register_hook(lambda gradient: gradient * 2)
    if kind == "create graph":
        first = cygrad.autograd.grad([root.square().sum() for root in roots], inputs, create_graph=True,
                                     allow_unused=True)
        again = [gradient.square().sum() for gradient in first if gradient is not None and gradient.requires_grad]
        second = cygrad.autograd.grad(again, inputs, allow_unused=True) if again else ()
        return [seen(gradient)[:4] if gradient is not None else None for gradient in (*first, *second)]
    if kind == "by results":
        found = cygrad.autograd.grad([root.square().sum() for root in roots], [*roots, *inputs], allow_unused=True)
        return [gradient if gradient is None else seen(gradient)[:4] for gradient in found]
    if kind in ("hooks of results", "hooks and graph"):
        for number, root in enumerate(roots):
            root.register_hook(lambda gradient, number=number: gradient * (number + 0.5))
            root.retain_grad()
    if kind == "part":
        roots[0].square()[..., :1].sum().backward(retain_graph=True, inputs=inputs[:1])
    if kind == "twice":
        cygrad.autograd.backward([root.sum() for root in roots], retain_graph=True)
    losses = [root.square().sum() for root in roots]
    if kind == "outer nodes":
        losses[0].grad_fn.next_functions[0][0].register_hook(lambda given, _: tuple(part * 3 for part in given))
        losses[-1].grad_fn.register_prehook(lambda given: tuple(part * 2 for part in given))
    if kind == "thread":
        in_thread(lambda: cygrad.autograd.backward(losses))
    else:
        cygrad.autograd.backward(losses, create_graph=kind == "hooks and graph",
                                 inputs=inputs if kind == "inputs" else None)
    return [seen(root.grad) if root.retains_grad else None for root in roots] + [type(roots[0])]


def difference(seed, executions=None):
    """Where the compiled function differs from the function itself: None, or the plan and the place."""
    case = Case(seed)
    eager, other = case.world(), case.world()
    function = case.function(eager)
    compiled = cygrad.compile(case.function(other), verify=seed % 16 == 0)
    for number, call in enumerate(case.calls):
        expected, found = run(eager, function, call), run(other, compiled, call)
        if expected != found:
            place = next((i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), "length")
            return f"seed {seed}, call {number} {call}, {case.kinds}, {case.result}: differs at {place}"
        if isinstance(found[-1], type):
            break
    if executions is not None:
        executions.append(cygrad.compiling.explain(compiled).executions)
    return None
