"""Cases that attack memory: methods on other objects, changing arguments, huge sizes."""

from tests.fuzz.objects import EXTENSION_TYPES, attributes
from tests.fuzz.words import DTYPES, METHODS, words

# What the code of an argument does while it is converted.
DEEDS = words("""
    setattr(x, 'data', t.ones((), dtype=x.dtype)) | setattr(x, 'data', t.ones(0, dtype=x.dtype)) |
    setattr(x, 'data', t.ones((3, 50), dtype=x.dtype)) | x.mul_(2) | x.zero_() | x.detach_() | x.sum().backward() |
    x.requires_grad_() | gc.collect() | t.empty_cache() | x.set_() | x.unsqueeze_(0) | x.resize_(0) | x.t_() |
    setattr(x, 'grad', None) | x.register_hook(print) | 1 / 0
""")
GROWING = words("""
    growing(0) | growing(1, 2) | growing(0, t.ones(2)) | changing('pop') | changing('clear') | changing('append')
""")
WIDE = words("""
    expand(2**31, 1) | expand(1, 2**31) | expand(2**32, 1) | expand(1, 2**32) | expand(2**31) | expand(2**62, 0) |
    expand(0, 2**62, 2**62) | expand(2**31, 0, 1) | expand(1, 1, 2**31) | expand(2**16, 2**16)
""")


def unbound(case):
    """A method, property or special method of an extension type, called on something else."""
    name = case.of(list(EXTENSION_TYPES))
    attribute = case.of(attributes(EXTENSION_TYPES[name]))
    case.called = ""
    rest = [case.argument() for _ in range(case.of((0, 0, 1, 1, 2, 3)))]
    wrong = case.of((case.argument("odd"), case.argument("number"), case.tensor(), "leaf(2).exp().grad_fn", "bare()",
                     "t.float32", "t.no_grad()"))
    return [f"attempt(lambda: unbound({name!r}, {attribute!r})({', '.join([wrong, *rest])}))"]


def bare(case):
    """An uninitialized object, or one with deleted attributes."""
    name = case.of(list(EXTENSION_TYPES))
    attribute = case.of(attributes(EXTENSION_TYPES[name]))
    case.called = ""
    rest = "".join(f", {case.argument()}" for _ in range(case.of((0, 0, 1, 1, 2))))
    return [f"x = bare({name!r}, {case.of(('False', 'True'))})",
            f"attempt(lambda: unbound({name!r}, {attribute!r})(x{rest}))",
            case.of(("repr(x)", "copy.copy(x)", "del x; gc.collect()", "pickle.dumps(x)", "x == x", "hash(x)"))]


def meddling(case):
    """An argument whose conversion changes the tensor at work, or the sequence that the argument is in."""
    case.called = case.of(METHODS)
    arguments = case.arguments(case.called, 1)
    deed = f"Meddles(lambda: {case.of(DEEDS)}, {case.of((0, 1, 2, -1, 1.5))})"
    hostile = case.of((deed, deed, f"[{deed}]", f"({deed}, 1)", f"[1, {deed}, 2]", case.of(GROWING)))
    given = arguments.split(", ") if arguments and not set("([{") & set(arguments) else []
    if given:
        place = case.random.randrange(len(given))
        keyword, equals, _ = given[place].rpartition("=")
        given[place] = keyword + equals + hostile
    else:
        given = [hostile] + [case.argument()] * case.of((0, 0, 1))
    key = case.of((deed, f"{deed}:", f":{deed}", f"::{deed}", f"..., {deed}", f"0, {deed}", f"None, {deed}:, ..."))
    return [f"x = {case.tensor()}", case.of((f"y = x.{case.called}({', '.join(given)})", f"y = x[{key}]",
                                             f"x[{key}] = {case.of((deed, '1', case.tensor()))}",
                                             f"y = t.tensor([1.0, {deed}, [2.0]])", f"y = x.new_zeros({hostile})"))]


def huge(case):
    """Sizes whose products do not fit 64 bits, of tensors that take no memory."""
    case.called = case.of(METHODS)
    wide = f"t.ones(1, dtype=t.{case.of(DTYPES)}).{case.of(WIDE)}"
    other = case.of((f"t.ones(1, dtype=t.{case.of(DTYPES)}).{case.of(WIDE)}", case.tensor(), case.argument()))
    rest = case.of(("", other, other, f"{other}, {case.argument()}"))
    return [f"x = {wide}", f"y = ({case.of(('x', 'x', case.tensor()))}).{case.called}({rest if 'x' else ''})"]


def exchanged(case):
    """Memory that is exchanged under a view or its base, before or after a change in place."""
    case.called = ""
    change = case.of(("v.mul_(2)", "v[0] = 5", "v.copy_(leaf(2))", "w = v[1:]; w.add_(1)", "v.exp_()", "b.mul_(2)",
                      "v.unsqueeze_(0)", "v.t_()"))
    memory = case.of(("t.ones(2)", "t.ones(50)", "t.arange(9.)[5:7]", "t.ones(3, dtype=t.float64)", "t.ones(0)",
                      "t.ones(2, 3)", "t.ones(2, dtype=t.complex64)", "inference(2)", "t.ones(1).expand(4)",
                      case.tensor()))
    return [
        f"b = leaf({case.of(('6', '2, 3', '3, 2', '1', '0'))}) * 1",
        f"v = b[{case.of(('1:', '..., 1:', '::2', ':0', '0', ':'))}]",
        case.of((f"v.data = {memory}", f"b.data = {memory}", f"v.data = {memory}; b.data = {memory}",
                 f"t.no_grad()(lambda: v.set_({memory}))()")),
        change,
        case.of(("b.sum().backward()", "v.sum().backward()", "b.sum().backward(create_graph=True)",
                 "repr(v.grad_fn)", "(b.sum() + v.sum()).backward()")),
    ]


STEPS = words("""
    v.append(X * 2) | v.append(X[1:]) | v.append(X.view(-1)) | v.append(X.t()) | v.extend(X.split(1)) |
    v.append(X.detach()) | v.append(X.data) | v.append(X + Y) | v.append(X @ Y) | v.append(X.exp()) |
    v.append(X.sum()) |
    v.append(t.cat([X, Y])) | X.mul_(2) | X.add_(Y) | X.copy_(Y) | setitem(X, 0, 3) | setitem(X, Y > 0, 1) |
    setattr(X, 'data', Y) | setattr(X, 'data', t.ones(X.shape)) | setattr(X, 'grad', Y) | setattr(X, 'grad', None) |
    X.requires_grad_() | X.detach_() | X.unsqueeze_(0) | X.t_() | X.zero_() | X.resize_(2) | X.set_(Y) |
    X.backward(t.ones(X.shape)) | X.sum().backward(retain_graph=True) | X.sum().backward(create_graph=True) |
    v.extend(t.autograd.grad(X.sum(), [Y], create_graph=True)) | X.retain_grad() | X.register_hook(lambda g: v.pop()) |
    X.register_hook(lambda g: g * 2) | X.register_hook(lambda g: X.detach_()) | X.register_hook(lambda g: Y.mul_(2)) |
    X.register_hook(lambda g: setattr(X, 'data', Y)) | X.grad_fn.register_hook(lambda *g: v.clear()) |
    X.grad_fn.register_prehook(lambda g: gc.collect()) | X.register_hook(lambda g: Y.sum().backward()) |
    X.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, 'grad', None)) |
    v.append(t.no_grad()(lambda: X * 1)()) | v.append(t.inference_mode()(lambda: X[..., :1])()) |
    v.append(t.inference_mode()(lambda: X * 2)()) | t.no_grad()(lambda: X.mul_(2))() |
    v.append(Custom.apply(X)) |
    v.append(function_that(lambda c, x: (c.save_for_backward(x), c.mark_dirty(x), x.mul_(2))[-1],
    lambda c, g: g * c.saved_tensors[0]).apply(X)) | v.append(copy.deepcopy(X)) | repr(X) | repr(X.grad_fn) |
    weakref.finalize(X, v.clear) and None | v.pop() | v.pop(0) | gc.collect() | X.grad_fn._saved_self |
    X.grad_fn.next_functions | v.append(X.grad_fn._saved_result)
""")


def program(case):
    """Views, exchanged memory, modes, hooks and collections in any order; each step may be refused."""
    case.called = ""
    lines = [f"v = [{case.tensor()}, leaf(2, 3) * 1, leaf(3)]"]
    for _ in range(case.of((4, 8, 16))):
        step = case.of(STEPS)
        picks = [f"v[{case.random.randrange(100)} % len(v)]" for _ in "XY"]
        bound = f"lambda X={picks[0]}, Y={picks[1]}: " if case.chance(0.7) else f"lambda X=v[-1], Y={picks[1]}: "
        lines.append(f"attempt({bound}{step}) if v else None")
    return [*lines, "attempt(lambda: sum(x.sum() for x in v).backward())", "del v; gc.collect()"]


KINDS = (unbound, bare, meddling, huge, exchanged, program)
WEIGHTS = (4, 3, 8, 6, 5, 10)
