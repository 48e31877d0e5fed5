"""Cases about transforms, compiled functions, files, capsules, subclasses and layouts."""

import cygrad as t
from tests.fuzz.words import METHODS, names, words

# Every public function and class of these is called, except those that write docstrings.
NAMESPACES = {
    name: [part for part in names(owner) if part != "documented"] for name, owner in {
        "t.func": t.func, "t.sparse": t.sparse, "t.distributions": t.distributions, "t.array_api": t.array_api,
        "t.distributions.transforms": t.distributions.transforms, "t.special": t.special, "t.fft": t.fft,
        "t.linalg": t.linalg, "t.nn.init": t.nn.init, "t.nn.utils": t.nn.utils, "t.nn.utils.rnn": t.nn.utils.rnn,
        "t.nn.utils.prune": t.nn.utils.prune, "t.signal.windows": t.signal.windows,
        "t.autograd.forward_ad": t.autograd.forward_ad, "t.utils.data": t.utils.data,
    }.items()
}
OF_SAMPLES = words("""
    s.sample() | s.rsample((2,)) | s.log_prob(X) | s.entropy() | s.cdf(X) | s.icdf(X) | s.expand((2, 3)) | s.mean |
    s.enumerate_support() | s.log_prob(s.sample((2,))) | repr(s) | s(X) | s.inv(X) | s.sample((-1,)) |
    s.log_abs_det_jacobian(X, X) | t.distributions.kl_divergence(s, s) | s.variance.sum().backward()
""")
TRANSFORMS = words("""
    t.vmap(f) | t.vmap(f, in_dims=0, out_dims=-1) | t.vmap(f, in_dims=(0, None)) | t.vmap(f, in_dims=-1) |
    t.vmap(t.vmap(f)) | t.func.grad(lambda *x: f(*x).sum()) | t.vmap(t.func.grad(lambda *x: f(*x).sum())) |
    t.func.jacrev(f) | t.func.jacfwd(f) | t.func.hessian(lambda *x: f(*x).sum()) | t.vmap(f, chunk_size=1) |
    t.vmap(f, randomness='different') | t.func.grad(t.func.grad(lambda *x: f(*x).sum())) |
    t.func.grad(lambda *x: t.vmap(f)(*x).sum()) | t.vmap(f, out_dims=5) | t.vmap(f, in_dims=K) |
    (lambda *x: t.func.vjp(f, *x)[1](x[0])) | (lambda *x: t.func.jvp(f, x, x)) |
    (lambda *x: t.func.linearize(f, *x)[1](*x)) | t.func.grad_and_value(lambda *x: f(*x).sum(), argnums=K)
""")
# Methods that return addresses or uninitialized memory, which differ between calls.
ADDRESSES = words("data_ptr | const_data_ptr | new | new_empty | new_empty_strided | resize_ | resize_as_ | __hash__ | "
                  "__sizeof__")
# What happens to a compiled function between two of its calls.
BETWEEN = words("""
    x.mul_(2) | setattr(x, 'data', t.ones(x.shape)) | setattr(x, 'data', t.ones(5)) | x.requires_grad_(False) |
    x.requires_grad_() | x.resize_(1) | x.set_() | x.unsqueeze_(0) | gc.collect() | t.empty_cache() |
    setattr(x, 'grad', t.ones(x.shape)) | x.register_hook(lambda g: g * 2) | setattr(x, 'data', x.data.t()) |
    setattr(x, 'data', x.data.double()) | f.__init__ | x.t_() | copy.deepcopy(f) | pickle.dumps(f) |
    x.register_hook(lambda g: gc.collect()) | t.set_default_dtype(t.float32)
""")
CAPSULE_WAYS = words("""
    t.from_dlpack(c) | t.from_dlpack(Holder(c)) | np.from_dlpack(Holder(c)) | (t.from_dlpack(c), t.from_dlpack(c)) |
    t.from_dlpack(Holder(c, K)) | t.utils.dlpack.from_dlpack(c) | repr(c) | (c, gc.collect()) |
    t.from_dlpack(Holder(c)).sum().backward() | t.from_dlpack(Holder(c)).add_(1)
""")
FORMS = words("""
    .to(memory_format=t.channels_last) | .contiguous(memory_format=t.channels_last) |
    .contiguous(memory_format=t.channels_last_3d) | .to('meta') | .to_sparse() | .to_sparse_csr() |
    .as_subclass(Traced) | .as_subclass(Refusing) | .to(t.float16) | .to(t.bfloat16) | .to(t.complex32) |
    .to(t.uint16) | .to(t.uint64) | .share_memory_() | .view(t.uint8) | .view(t.float16) | .untyped_storage() |
    .to_sparse().coalesce() | .clone(memory_format=t.preserve_format) | .as_subclass(t.nn.Parameter)
""")
MODULE_PARTS = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                "_state_dict_hooks", "training", "_non_persistent_buffers_set", "_version", "__dict__")


def namespaced(case):
    """A function or class of one of the packages that are loaded late."""
    name = case.of(list(NAMESPACES))
    case.called = case.of(NAMESPACES[name])
    count = case.of((0, 1, 1, 2, 2, 3))
    given = ", ".join(case.argument() for _ in range(count)) if case.chance(0.5) else case.arguments(case.called)
    return [f"y = {name}.{case.called}({given})", *case.after()]


def sampled(case):
    """Create a distribution or a transform with arbitrary arguments, and call its methods."""
    case.called = case.of(NAMESPACES["t.distributions"])
    kinds = case.random.choices(("Tensor", "number", "any"), (1, 2, 1), k=case.of((1, 1, 2, 2, 3)))
    given = ", ".join(map(case.argument, kinds))
    validate = case.of(("", "", ", validate_args=False"))
    return [f"s = t.distributions.{case.called}({given}{validate})",
            f"y = {case.of(OF_SAMPLES).replace('X', case.tensor())}"]


def transformed(case):
    """A transform of a function, of tensors of any kind."""
    case.called = case.of(METHODS)
    body = case.of((f"x.{case.called}({case.arguments(case.called, 1)})", f"x.{case.called}()",
                    f"x.{case.called}({case.arguments(case.called, 1)})", "x * y[0]", "x @ x", f"x[{case.index()}]",
                    f"x.mul_({case.argument()})", "x.backward()", "None", f"(x, {case.argument()})", "float(x)"))
    transform = case.of(TRANSFORMS).replace("K", case.argument())
    return [f"f = lambda x, *y: {body}", f"y = {transform}({case.tensor()}{case.of(('', '', ', ' + case.tensor()))})",
            *case.after()]


def replayed(case):
    """Compare a compiled function with the function after arbitrary changes between calls."""
    case.called = case.of([name for name in METHODS if name not in ADDRESSES])
    body = case.of((f"x.{case.called}({case.arguments(case.called, 1)})", f"(x * 2).{case.called}()",
                    f"(x + x.{case.called}({case.arguments(case.called, 1)})).sum()", "(x * 2 + y).tanh()",
                    f"x[{case.index()}] * 2", "(x.mul_(1.5), x)[1]", "(x @ y).relu().sum()"))
    between = case.of((*BETWEEN, f"(x := {case.tensor()})"))
    ending = case.of(("", "", ".sum()"))
    return [f"f = lambda x, y=2: ({body}){ending}", "g = t.compile(f)", f"x = {case.tensor()}",
            *[f"same(f, g, x{case.of(('', ', x', ', 3'))})"] * 3, between,
            *[f"same(f, g, x{case.of(('', ', x'))})"] * 2,
            case.of(("g(x).sum().backward()", "t.autograd.grad(g(x).sum(), x, create_graph=True)[0].sum().backward()",
                     "t.no_grad()(g)(x)", "t.inference_mode()(g)(x)", "del f, g, x; gc.collect()"))]


def lent(case):
    """Capsules: used once, twice, never, after their tensor is gone, or with made-up contents."""
    case.called = ""
    options = case.of(("", "", "max_version=(1, 0)", "copy=True", "max_version=(1, 3), copy=False"))
    made = case.of((f"({case.tensor()}).__dlpack__({options})", f"np.ones(3).__dlpack__({options})",
                    f"lying({case.random.randrange(10**6)})", f"lying({case.random.randrange(10**6)})"))
    return [f"c = {made}", f"y = {case.of(CAPSULE_WAYS).replace('K', case.argument())}",
            case.of(("del c; gc.collect()", "del y; gc.collect()", "repr(y)", "y.sum()", "y.mul_(2)"))]


def damaged_file(case):
    """A file of one of the three formats, with other bytes here and there."""
    case.called = ""
    kind = case.of(("torch", "torch", "cygrad", "legacy", "safetensors"))
    return [f"t.load(mutated({kind!r}, {case.random.randrange(10**6)}){case.of(('', '', ', mmap=True'))})"
            if kind != "safetensors" else
            f"t.safetensors.load(mutated({kind!r}, {case.random.randrange(10**6)}).getvalue())"]


def elsewhere(case):
    """Tensors without elements, in other memory formats, sparse ones, and subclasses."""
    case.called = case.of(METHODS)
    x, y = (case.tensor() + case.of(FORMS) for _ in range(2))
    given = case.of((case.arguments(case.called, 1), "y", f"y, {case.argument()}", ""))
    return [f"x, y = {x}, {y}", f"z = x.{case.called}({given})",
            case.of(("z.sum().backward()", "repr(z)", "z + x", "copy.deepcopy(z)", "pickle.loads(pickle.dumps(z))",
                     f"z[{case.index()}] = y", "z.tolist()", "z.to_dense()", "np.asarray(z)", "t.cat([x, y])"))]


def inside(case):
    """Modules whose attribute dicts were modified."""
    case.called = ""
    part = case.of(MODULE_PARTS)
    deed = case.of((f"m.{part} = {case.argument()}", f"m.{part}['weight'] = {case.argument()}", f"del m.{part}",
                    f"m.{part}.clear()", f"setattr(m, {case.argument()}, {case.argument()})",
                    f"m.register_parameter('weight', {case.argument()})", f"m.add_module('x', {case.argument()})",
                    f"m.register_buffer('b', {case.argument()})", f"m.weight.data = {case.tensor()}",
                    "del m.weight"))
    used = case.of(("m(leaf(2, 2))", "m.state_dict()", "m.load_state_dict(m.state_dict())", "repr(m)", "m.eval()",
                    "list(m.modules())", "copy.deepcopy(m)", "m.double()", "pickle.dumps(m)", "m.to('meta')",
                    "t.func.functional_call(m, dict(m.named_parameters()), (leaf(2, 2),))", "t.compile(m)(leaf(2, 2))"))
    return ["m = t.nn.Linear(2, 2)", f"attempt(lambda: None); {deed}", f"y = {used}"]


KINDS = (namespaced, sampled, transformed, replayed, lent, damaged_file, elsewhere, inside)
WEIGHTS = (8, 4, 8, 6, 4, 4, 8, 3)
