"""``torch.library``: custom operators, Python functions with their own derivatives."""

import contextlib
import functools
import inspect

import cygrad
from cygrad._core.dispatch import tangents
from cygrad._core.graph.inplace import set_version
from cygrad.autograd.function import Function
from cygrad.compatibility.library_names import is_batchedtensor
from cygrad.utils import operator_modes
from cygrad.utils.pytree import tree_flatten

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "impl", "opcheck", "register_autograd", "register_fake",
           "register_kernel", "register_vmap", "triton_op", "wrap_triton"]

OPERATORS = {}             # "namespace::name" -> CustomOpDef


class CustomOpDef(operator_modes.Overload):
    """
    A custom operator.

    Parameters
    ----------
    name : str
        Of the form ``namespace::name``.
    function : callable or None
        The kernel; None until it is registered.
    mutates_args : sequence of str or "unknown"
        Names of arguments that the kernel modifies, which counts as an in-place operation.
    """

    def __init__(self, name, function=None, mutates_args=()):
        super().__init__(name)
        self._qualname, self.function, self.derivative, self.setup = name, function, None, None
        self.mutated, self.batched = mutates_args, None
        if function is not None:
            functools.update_wrapper(self, function)
        self.default = self

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self                               # an overload

    def register_autograd(self, backward, /, *, setup_context=None, lib=None):
        """Register ``backward(ctx, *grads)``; ``setup_context(ctx, inputs, output)`` saves tensors."""
        self.derivative, self.setup = backward, setup_context

    def register_kernel(self, device_types, func=None, /):
        """Register the kernel."""
        def kept(function):
            kinds = (device_types,) if isinstance(device_types, str) else device_types
            if kinds is None or "cpu" in kinds:
                self.function = function
            return function
        return kept if func is None else kept(func)

    def register_fake(self, func=None, /):
        """Accept a shape function and ignore it."""
        return (lambda function: function) if func is None else func

    register_torch_dispatch = register_fake

    def register_vmap(self, func=None, /):
        """Register the rule ``func(info, in_dims, *args)`` for vmap, which returns outputs and their dimensions."""
        def kept(function):
            self.batched = function
            return function
        return kept if func is None else kept(func)

    @property
    def changes(self):
        """Whether modes must compute it again: without a derivative of its own, its kernel is recorded."""
        return self.derivative is None

    def name(self):
        """Return the name with its namespace."""
        return self._qualname

    def __repr__(self):
        return f"<OpOverload(op='{self._qualname.replace('::', '.')}', overload='default')>"

    def __str__(self):
        return f"{self._qualname.replace('::', '.')}.default"

    def __call__(self, *args, **options):
        found = operator_modes.dispatch_custom(self, args, options)
        found = self._compute(self.function, args, options) if found is None else found[0]
        if self.mutated:
            self._count_changes(args, options)
        return found

    def _bound(self, args, options):
        """Return positional and keyword-only arguments, with defaults."""
        try:
            bound = inspect.signature(self.function).bind(*args, **options)
        except ValueError:
            return args, options
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _count_changes(self, args, options):
        """Count the call as an in-place operation, which saved tensors notice."""
        names = list(inspect.signature(self.function).parameters)
        args, options = self._bound(args, options)
        for name, value in [*zip(names, args, strict=False), *options.items()]:
            for tensor in _tensors(value) if self.mutated == "unknown" or name in self.mutated else ():
                set_version(tensor, tensor._version + 1)

    def given(self, results, args, kwargs):
        """Record the call with given results instead of computing them."""
        results = results if len(results) != 1 else results[0]
        return self._compute(lambda *arguments, **options: results, args, kwargs)

    def _compute(self, kernel, args, options):
        """Return what a kernel computes, with the derivative of the operator."""
        if self.function is None:
            raise NotImplementedError(f"{self._qualname}: no implementation for the CPU is registered. Register one "
                                      f"with register_kernel or impl.")
        tensors = _tensors((args, options))
        ruled = self.batched is not None and any(map(is_batchedtensor, tensors))
        recorded = cygrad.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        # In a level of forward mode the function raises an error, because it has no jvp.
        if not ruled and (self.derivative is None or not (recorded or tangents.current_level() is not None)):
            return kernel(*args, **options)
        args, options = self._bound(args, options)
        return _Called.apply(self, kernel, list(options), *args, *options.values())


def _tensors(tree):
    """Return the tensors in a tree of containers."""
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, cygrad.Tensor)]


def _parts(names, args):
    """Split arguments into positional and keyword-only ones."""
    places = len(args) - len(names)
    return args[:places], dict(zip(names, args[places:], strict=True))


def _by_kernel(kernel, info, dims, names, args):
    """Return the outputs of a batch by the rules of the operators in the kernel, and their batch dimensions."""
    args, options = _parts(names, args)
    return cygrad.vmap(functools.partial(kernel, **options), tuple(dims[:len(args)]),
                       randomness=info.randomness)(*args), 0


class _Called(Function):
    """A call of an operator with a derivative."""

    @staticmethod
    def forward(operator, kernel, names, *args):
        args, options = _parts(names, args)
        return kernel(*args, **options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.operator, _, names, *args = inputs
        if ctx.operator.setup is not None:
            args, options = _parts(names, tuple(args))
            options = {"keyword_only_inputs": options} if options else {}
            ctx.operator.setup(ctx=ctx, inputs=args, output=output, **options)

    @staticmethod
    def vmap(info, in_dims, operator, kernel, names, *args):
        dims = in_dims[3:]
        if operator.batched is None:                 # the operators of the kernel have rules
            return _by_kernel(kernel, info, dims, names, args)
        args, options = _parts(names, args)
        return operator.batched(info, dims[:len(args)], *args, **options)

    @staticmethod
    def backward(ctx, *gradients):
        found = ctx.operator.derivative(ctx, *gradients)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return None, None, None, *found, *(None for _ in range(len(ctx.needs_input_grad) - 3 - len(found)))


def custom_op(name, fn=None, /, *, mutates_args=(), device_types=None, schema=None, tags=None):
    """Define an operator by a function."""
    def made(function):
        OPERATORS[name] = CustomOpDef(name, function, mutates_args)
        return OPERATORS[name]
    return made if fn is None else made(fn)


triton_op = custom_op


def _known(op):
    if isinstance(op, CustomOpDef):
        return op
    name = str(op).partition(".")[0]
    return OPERATORS.setdefault(name, CustomOpDef(name))


def define(qualname, schema=None, *, lib=None, tags=()):
    """Declare an operator without a kernel."""
    return _known(qualname)


def _registered(method):
    def register(op, *args, lib=None, **options):
        return getattr(_known(op), method)(*args, **options)
    register.__name__ = method
    register.__doc__ = f"`CustomOpDef.{method}` of the operator of a name."
    return register


register_fake, register_autograd, register_kernel, register_vmap, register_torch_dispatch = map(
    _registered, ("register_fake", "register_autograd", "register_kernel", "register_vmap", "register_torch_dispatch"))
impl_abstract = register_fake


def impl(qualname, types, func=None, *, lib=None):
    """Register a kernel for some devices."""
    kinds = (types,) if isinstance(types, str) else tuple(types)
    wide = {"CPU": "cpu", "CompositeImplicitAutograd": "cpu", "CompositeExplicitAutograd": "cpu", "default": "cpu"}
    return _known(qualname).register_kernel(tuple(wide.get(kind, kind) for kind in kinds), func)


class Library:
    """Operators of one namespace."""

    def __init__(self, ns, kind, dispatch_key=""):
        self.ns = ns

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare an operator by its signature, ``name(Tensor x) -> Tensor``."""
        name = schema.partition("(")[0].strip()
        define(f"{self.ns}::{name}")
        return name

    def impl(self, op_name, fn, dispatch_key="", **options):
        """Register a kernel; kernels for other devices and for tracing are ignored."""
        if dispatch_key in ("", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            impl(f"{self.ns}::{op_name}", "cpu", fn)

    def _register_fake(self, op_name, fn, *args, **options):
        return fn


@contextlib.contextmanager
def _scoped_library(ns, kind, dispatch_key=""):
    """Define operators of a namespace for the duration of a block."""
    before = set(OPERATORS)
    try:
        yield Library(ns, kind, dispatch_key)
    finally:
        for name in set(OPERATORS) - before:
            if name.startswith(f"{ns}::"):
                del OPERATORS[name]


def opcheck(op, args, kwargs=None, **options):
    """Call an operator as a check."""
    op(*args, **(kwargs or {}))
    return {"test_schema": "SUCCESS"}


def wrap_triton(kernel):
    """Return the kernel."""
    return kernel


class _Namespace:
    """Operators of a namespace as attributes; ``aten`` has operators of the table."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        found = OPERATORS.get(f"{self._name}::{name}")
        if found is None and self._name == "aten" and not name.startswith("__"):
            found = getattr(operator_modes.ops.aten, name, None)
            if found is None:                        # libraries keep tables of them: refuse calls only
                from cygrad.compatibility import internal
                found = CustomOpDef(f"aten::{name}", getattr(cygrad, name, None) or vars(internal).get(name))
        if found is None:
            raise AttributeError(f"torch.ops.{self._name}.{name} is not in cygrad: there is no operator of this name. "
                                 "Define it with torch.library.custom_op.")
        return found


class Operators:
    """``torch.ops``: operators by namespace."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Namespace(name)

    def load_library(self, path):
        """Refuse to load a library."""
        raise OSError(f"{path}: extensions for PyTorch cannot be loaded by cygrad.")


ops = Operators()
