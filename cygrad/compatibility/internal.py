"""Further functions of PyTorch's namespaces, some of them private, used by libraries."""

import contextlib
import functools
import traceback

import cygrad
from cygrad import Tensor
from cygrad._core.graph.boxing import Disabled
from cygrad._core.graph.boxing import disabled_torch_function as _disabled_torch_function_impl  # noqa: F401
from cygrad._core.table.operator import operators
from cygrad.conversion import _rebuild as _rebuild_tensor  # noqa: F401
from cygrad.nn import Parameter
from cygrad.printing import tensor_repr

has_lapack = has_openmp = has_spectral = True
has_mkl = False
legacy_contiguous_format = cygrad.contiguous_format


# ---------------------------------------------------------------------------------------- predicates and assertions

def _check(cond, message=None):
    """Raise RuntimeError unless `cond` holds."""
    if not cond:
        raise RuntimeError("_check: the condition does not hold." if message is None else str(message()))


def _assert(condition, message):
    """Raise AssertionError unless `condition` holds."""
    if not condition:
        raise AssertionError(message)


def _assert_async(condition, assert_msg=""):
    """Raise RuntimeError unless the only element of a tensor is true."""
    if not condition:
        raise RuntimeError(f"_assert_async: the element is zero. {assert_msg}".strip())


def _shape_as_tensor(input):
    """Return the sizes as a tensor."""
    return cygrad.tensor(tuple(input.shape), dtype=cygrad.int64)


def _unique2(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Return unique elements, or slices along a dimension, their inverse and their counts; empty what is not asked."""
    values, *others = cygrad.unique(self, sorted, True, True, dim)
    return (values, *[part if asked else part.new_empty(0)
                      for part, asked in zip(others, (return_inverse, return_counts), strict=True)])


def _unique(self, sorted=True, return_inverse=False):
    """Return the unique elements and their inverse."""
    return _unique2(self, sorted, return_inverse)[:2]


def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    """Return the unique slices along a dimension, their inverse and their counts."""
    return _unique2(self, sorted, return_inverse, return_counts, dim)


def _is_all_true(self):
    """Return whether all elements of a bool tensor are true, as a tensor."""
    return self.all()


def _is_any_true(self):
    """Return whether an element of a bool tensor is true, as a tensor."""
    return self.any()


def _standard_gamma(self, generator=None):
    """Draw from the gamma distributions of these concentrations, with a gradient."""
    from cygrad.distributions.gamma_samples import standard_gamma
    with _own(generator, "_standard_gamma"):
        return standard_gamma(self)


def sym_ite(b, t, f):
    """Return `t` if `b` else `f`."""
    return t if b else f


def sym_sum(args):
    """Return the sum of numbers."""
    return sum(args)


def init_num_threads():
    """Do nothing: threads are created when needed."""


# Blocks in which subclasses of Tensor are treated like Tensor.
DisableTorchFunctionSubclass = DisableTorchFunction = Disabled
_DisableTorchDispatch = no_dispatch = functools.partial(Disabled, 2)


def _new_zeros_with_same_feature_meta(self, other, *, self_num_batch_dims=0):
    """Return zeros with the layout of `other`, once for each index of the first dimensions of `self`."""
    batch = self.shape[:self_num_batch_dims]
    size = other.untyped_storage().nbytes() // other.itemsize
    memory = cygrad.zeros(batch.numel() * size, dtype=other.dtype)
    strides = [size * batch[place + 1:].numel() for place in range(len(batch))]
    return memory.as_strided([*batch, *other.shape], [*strides, *other.stride()], other.storage_offset())


def convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
                         output_padding, groups, output_mask):
    """Return the gradients of a convolution for its input, its weight and its bias; None where not asked."""
    places = [place for place, asked in enumerate(output_mask) if asked]
    values = [input, weight, input.new_zeros(grad_output.shape[1])]

    def of_asked(*asked):
        given = list(values)
        for place, value in zip(places, asked, strict=True):
            given[place] = value
        return cygrad.convolution(*given, stride, padding, dilation, transposed, output_padding, groups)
    found = iter(cygrad.func.vjp(of_asked, *[values[place] for place in places])[1](grad_output)) if places else None
    return tuple(next(found) if asked else None for asked in output_mask)


# ------------------------------------------------------------------------------------------------- control flow

def cond(pred, true_fn, false_fn, operands=()):
    """Call one of two functions with the operands."""
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Apply a function repeatedly while a condition holds."""
    values = tuple(carried_inputs)
    while cond_fn(*values):
        found = body_fn(*values)
        values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    return values


# ---------------------------------------------------------------------------------------- random counts

def poisson(input, generator=None):
    """Draw Poisson counts; each element has its own mean.

    Examples
    --------
    >>> cygrad.poisson(cygrad.zeros(3))
    tensor([0., 0., 0.])
    """
    counts = _drawn(generator, "poisson", input.dtype, input.shape, input.detach())
    return cygrad.where(cygrad.ones_like(counts, dtype=cygrad.bool), counts, input)      # zero gradient


def binomial(count, prob, generator=None):
    """Draw binomial counts."""
    count, prob = cygrad.broadcast_tensors(count, prob)
    successes = _drawn(generator, "binomial", prob.dtype, prob.shape, count.detach(), prob.detach())
    return operators.underived(operators.underived(successes, count, "binomial"), prob, "binomial")


def _own(generator, operation):
    from cygrad.random.generator import chosen, own_generator
    return own_generator(chosen(generator, operation))


def _drawn(generator, *arguments):
    from cygrad.distributions.samples import drawn
    with _own(generator, arguments[0]):
        return drawn(*arguments)


# --------------------------------------------------------------------------------------- low-rank factorizations

def _range_basis(A, q, niter):
    """Return an orthonormal basis that approximates the range of a matrix (Halko et al., 2011)."""
    Q = cygrad.linalg.qr(A @ cygrad.randn(A.shape[-1], q, dtype=A.dtype)).Q
    for _ in range(niter):
        Q = cygrad.linalg.qr(A.mH @ Q).Q
        Q = cygrad.linalg.qr(A @ Q).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """Return the largest singular values of a matrix and their vectors, by random projections: (U, S, V)."""
    A = A if M is None else A.to_dense() - M
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = _range_basis(A, min(q, *A.shape[-2:]), niter)
    U, S, Vh = cygrad.linalg.svd(Q.mH @ A, full_matrices=False)
    return (Vh.mH, S, Q @ U) if wide else (Q @ U, S, Vh.mH)


def pca_lowrank(A, q=None, center=True, niter=2):
    """Return the principal components of a matrix with centered columns, or center them."""
    q = min(6, *A.shape[-2:]) if q is None else q
    A = A.to_dense() if center else A
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
           ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """Return the largest or smallest eigenvalues of a symmetric matrix and their vectors, from a full decomposition."""
    k = k or (1 if X is None else X.shape[-1])
    A = A.to_dense()
    A = (A + A.mT) / 2                                     # so that gradients are symmetric, too
    if X is None:                                          # PyTorch draws random vectors: keep the stream equal
        for _ in range(A.shape[:-2].numel()):
            cygrad.randn(A.shape[-1], k if n is None else n, dtype=A.dtype)
    if B is not None:
        L = cygrad.linalg.cholesky(B)
        A = cygrad.linalg.solve_triangular(L, cygrad.linalg.solve_triangular(L, A, upper=False).mT, upper=False)
    values, vectors = cygrad.linalg.eigh(A)
    if B is not None:
        vectors = cygrad.linalg.solve_triangular(L.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]


# ------------------------------------------------------------------------------------- of the module torch._utils

class ExceptionWrapper:
    """An exception with its traceback, to be raised in another thread or process."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self):
        """Raise an exception of the same type with the traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\n{self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:
            error = RuntimeError(message)
        raise error


def _flatten_dense_tensors(tensors):
    """Concatenate the elements of several tensors to a vector."""
    return cygrad.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Split a vector into the shapes of other tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


def _get_device_index(device, optional=False, allow_cpu=False):
    """Return the index of a device; -1 for the CPU."""
    device = cygrad.device(device)
    return -1 if device.type == "cpu" else device.index


def _get_available_device_type():
    """Return None: there is no accelerator."""


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """Return a parameter of its data."""
    return Parameter(data, requires_grad)


def _str(self, *, tensor_contents=None):
    """How a tensor prints."""
    return tensor_repr(self) if isinstance(self, Tensor) else repr(self)


def _str_intern(inp, *, tensor_contents=None):
    """How a tensor prints."""
    return tensor_repr(inp)


@contextlib.contextmanager
def printoptions(**options):
    """Set print options within a block."""
    before = cygrad.get_printoptions()
    cygrad.set_printoptions(**options)
    try:
        yield
    finally:
        cygrad.set_printoptions(**before)


def _tensor_str(self, indent):
    """Format the elements, indented by a number of characters."""
    text = tensor_repr(self)
    return text[text.index("(") + 1:text.rindex(")")].replace("\n" + " " * 7, "\n" + " " * indent)


class _PrintOptions:
    """Return the print options."""

    def __getattr__(self, name):
        return cygrad.get_printoptions()[name]


PRINT_OPTS = _PrintOptions()


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    """Format a tensor with the suffixes after its elements."""
    return f"{', '.join([tensor_str, *suffixes])})"


def classproperty(function):
    """Return a property of a class."""
    return type("classproperty", (), {"__get__": lambda self, instance, owner: function(owner)})()


class thread_safe_generator:
    """Return the iterator unchanged."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)


# ----------------------------------------------------------------------------- of the module torch._jit_internal

def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """Return a function that calls one of two functions, depending on an argument."""
    def dispatched(*args, **options):
        chosen = options.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if chosen else if_false)(*args, **options)
    return dispatched


def _copy_to_script_wrapper(function):
    """Return the function."""
    return function


_overload = _overload_method = ignore = export = unused = _copy_to_script_wrapper


# ---------------------------------------------------------------------------------------- of the module torch._C

def _get_tracing_state():
    """Return None: nothing is being traced."""


def _log_api_usage_once(*args):
    """Do nothing: usage is not logged."""


def _are_functorch_transforms_active():
    """Return whether a function is being transformed by `vmap`."""
    return False


def _get_default_device():
    """Return the name of the default device."""
    return cygrad.get_default_device().type


def _parse_to(*args, **options):
    """Parse the arguments of `Tensor.to`: device, dtype, non_blocking and memory format."""
    device = dtype = None
    for value in [*args, *(options.get(name) for name in ("device", "dtype", "tensor"))]:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, cygrad.dtype):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            device = cygrad.device(value)
    return device, dtype, options.get("non_blocking", False), options.get("memory_format")


def _get_accelerator(check=None):
    """Return the CPU: there is no accelerator."""
    return cygrad.device("cpu")


_TensorMeta, _TensorBase, TensorBase, _LinAlgError = type(Tensor), Tensor, Tensor, cygrad.linalg.LinAlgError
_VF = _VariableFunctions = cygrad


def __getattr__(name):
    if name.startswith("_jit_"):                 # switches of the compiler
        return lambda *args: False
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
