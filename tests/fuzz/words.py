"""Fragments of Python text for cases."""

import cygrad as t


def words(text):
    """The parts between the bars."""
    return tuple(part.strip() for part in " ".join(text.split()).split(" | "))


def names(owner, wanted=callable):
    """Return the public names of an object whose values satisfy a condition."""
    return [name for name in sorted(dir(owner)) if not name.startswith("_") and wanted(getattr(owner, name))]


DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128",
          "float16", "bfloat16", "complex32", "uint16", "uint32", "uint64")
NUMBERS = words("""
    0 | 1 | -1 | 2 | 3 | 0.5 | -2.5 | True | 1j | nan | inf | -inf | 1e300 | -0.0 | 255 | 256 | -129 | 2**31 | 2**62
    | 2**63 - 1 | -2**63 | 2**63 | 10**30 | np.float32(1) | np.int8(3) | np.bool_(True) | np.complex64(1j) |
    np.float64(nan)
""")
SIZES = words("""
    0 | 1 | 2 | 3 | -1 | -2 | 4 | 5 | -3 | 7 | 64 | 1000 | -1000 | 2**31 | 2**40 | 2**62 | -2**63 | 2**63 | 10**30 |
    True | 1.0 | None | np.int64(2) | t.tensor(2)
""")
ODD = words("""
    None | 'x' | '' | b'x' | object() | ... | () | [] | {} | {'a': 1} | {1, 2} | int | lambda: 1 | t | t.float32 |
    slice(None) | range(3) | iter([1]) | np.array(1) | float | Exception | 'mean' | 'sum' | 'none' | [None] |
    (1, 'x') | Refuses('__index__') | Refuses('__array__') | Refuses('__len__') | Refuses('__float__') |
    Refuses('__bool__') | Refuses('__iter__') | Refuses('__dlpack__') | Refuses('__torch_function__') |
    Lies('__index__', 'x') | Lies('__index__', 10**30) | Lies('__index__', -5) | Lies('__array__', 3) |
    Lies('__array__', None) | Lies('__float__', 'x') | Lies('__len__', -1) | Lies('__len__', 2**62) |
    Lies('__dlpack__', 3) | Lies('__array__', np.array([object()])) | Sequence(3) | Sequence(9) | Sequence(2**40) |
    Sequence(2, 'x') | Shrinking([1.0, 2.0, 3.0]) | clearing() | endless() | [[1.0, 2.0], [3.0]] | [1, [2]] |
    [[], [1]] | ['a'] | t.Generator() | structured()[K] | weakref.ref(t.ones(1)) | [t.ones(2), 1] |
    (leaf(2), leaf(3)) | Custom
""")
INDICES = words("""
    0 | -1 | : | ::2 | None | ... | 1:3 | [0, 1] | True | t.tensor([0, 1]) | t.tensor([True, False]) | t.tensor(1) |
    5 | 2**62 | -2**63 | ::0 | ::-1 | 1.5 | 'x' | [[0], [1]] | [] | np.array([1, 0]) | t.tensor([-7]) |
    t.tensor([0.5]) | 2**63: | :10**30 | [True, False] | np.int64(1) | range(2) | () | Refuses('__index__') |
    Lies('__index__', 10**30) | Sequence(2, 0) | endless() | 1j | nan | b'x'
""")
STATES = words("""
    freed() | outdated() | inference(2, 3) | inference() | with_node('no_grad') | with_node('several') |
    with_node('select') | with_node('flat') | with_node('expanded') | with_node('custom') | with_node('outdated') |
    hook_that('x') | hook_that(t.ones(5))
""")
SUFFIXES = words("""
    .t() | [::2] | [..., :1] | .unsqueeze(0) | .expand(2, 2, 3) | [0] | .transpose(0, -1) | .detach() | .mT |
    .requires_grad_() | .unsqueeze(-1)
""")
AFTER = words("""
    y.sum().backward() | repr(y) | y.backward() | y.sum().backward(create_graph=True) | y.tolist() |
    t.autograd.grad(y.sum(), [leaf(1)], allow_unused=True) | y.mul_(2) | y.sum().backward(); y.sum().backward() |
    y[0].zero_() | y.numpy() | copy.deepcopy(y) | y.is_contiguous() and y.view(-1)
""")
OF_AUTOGRAD = words("""
    backward | grad | functional.jacobian | functional.hessian | functional.vjp | functional.jvp | functional.hvp |
    functional.vhp | gradcheck | gradgradcheck | graph.get_gradient_edge | graph.backward_order |
    graph.memory_report | graph.to_dot | graph.register_multi_grad_hook | graph.saved_tensors_hooks |
    graph.disable_saved_tensors_hooks | graph.save_on_cpu | graph.GradientEdge |
    graph.allow_mutation_on_saved_tensors
""")
# These change global state, print, or start arbitrarily many threads.
KEPT_OUT = words("""
    empty_cache | load | printoptions | save | set_default_dtype | set_grad_enabled | set_num_threads |
    set_printoptions | set_rng_state | show_config | threads
""")
METHODS_KEPT_OUT = words("""
    __array_priority__ | __class__ | __delattr__ | __dict__ | __dir__ | __doc__ | __getattribute__ | __getstate__ |
    __hash__ | __init__ | __init_subclass__ | __module__ | __new__ | __pyx_vtable__ | __reduce__ | __setattr__ |
    __setstate__ | __sizeof__ | __slots__ | __subclasshook__ | __weakref__
""")

FUNCTIONS = [name for name in names(t, lambda value: callable(value) and not isinstance(value, type))
             if name not in KEPT_OUT]
METHODS = [name for name in sorted(dir(t.Tensor))
           if callable(getattr(t.Tensor, name)) and name not in METHODS_KEPT_OUT]
PROPERTIES = names(t.Tensor, lambda value: not callable(value))
LAYERS = [name for name in names(t.nn, lambda value: isinstance(value, type) and issubclass(value, t.nn.Module))
          if name != "Module"]
OF_LAYERS = names(t.nn.functional)
OPTIMIZERS = [name for name in names(t.optim, lambda value: isinstance(value, type)
                                     and issubclass(value, t.optim.Optimizer)) if name != "Optimizer"]
