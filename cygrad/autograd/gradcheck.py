"""Comparison of derivatives with finite differences: ``gradcheck`` and, for second derivatives, ``gradgradcheck``.

Tensors are taken as real vectors: a complex input z = x + iy as x and y, a complex output w = u + iv as u and v. The
gradient of u with respect to z, du/dx + i du/dy, is the result of backward for the vector 1, and that of v the result
for the vector i.
"""

from typing import Any

import numpy as np

from cygrad._core.arrays.array import STRIDED
from cygrad._core.creation.creation import from_numpy
from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import warn_user
from cygrad.autograd.function import Function
from cygrad.autograd.gradcheck_forward import ForwardCheck
from cygrad.autograd.run import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

# Directions of fast mode and gradients of gradgradcheck come from a separate generator, equal in each call.
SEED = 2718


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` if the derivatives of a function are wrong."""


@names_arguments
def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=False):
    """
    Compare gradients of backward with central differences.

    For each input that requires grad and each output, ``analytical`` from backward and ``numerical`` from
    ``(func(x + eps) - func(x - eps)) / (2 eps)`` must satisfy ``|analytical - numerical| <= atol + rtol |numerical|``.
    The defaults are meant for float64 and complex128.

    Parameters
    ----------
    func : callable
        Returns a Tensor or a sequence of Tensors; deterministic.
    inputs : Tensor or sequence
        Arguments of `func`. Gradients of Tensors that require grad are compared.
    eps, atol, rtol : float
        Step of the differences, and tolerances.
    raise_exception : bool, default True
        Whether to raise an error for wrong gradients, or else return False.
    nondet_tol : float, default 0.0
        Tolerance of the difference between two backward passes.
    check_undefined_grad : bool, default True
        Whether to check that missing gradients of outputs are treated as zeros.
    check_grad_dtypes : bool, default False
        Whether to check that each gradient has the dtype of its input.
    check_batched_grad : bool, default False
        Whether to compare ``grad(..., is_grads_batched=True)`` with one ``grad`` for each vector.
    check_forward_ad : bool, default False
        Whether to check forward mode, too.
    check_batched_forward_grad : bool, default False
        Whether to compare tangents under `cygrad.vmap` with single ones; needs `check_forward_ad`.
    check_backward_ad : bool, default True
        Whether to check backward mode.
    fast_mode : bool, default False
        Whether to compare products of the Jacobian with two random vectors instead of all entries, by one backward for
        each output. The whole Jacobian is computed only for the error message.
    masked : bool, default False
        Inputs may be sparse tensors that lack elements: only the values are compared, as the gradient of a sparse
        tensor has its indices.

    Returns
    -------
    bool
        True if all gradients are right.

    Raises
    ------
    GradcheckError
        If a gradient is wrong, is not deterministic, or has the wrong shape or dtype.
    ValueError
        If no input requires grad; if an input is sparse without `masked`, or an output is sparse.
    RuntimeError
        If an input has elements that share memory.
    AssertionError
        If there is nothing to check, or shapes or dtypes of the outputs depend on the values of the inputs.

    Examples
    --------
    >>> x = cygrad.tensor([0.5, 2.0], dtype=cygrad.float64, requires_grad=True)
    >>> cygrad.autograd.gradcheck(cygrad.sin, x)
    True
    """
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("gradcheck: check_batched_forward_grad requires check_forward_ad=True (got False). Set "
                             "check_forward_ad=True, or omit it.")
    if not check_backward_ad and not check_forward_ad:
        raise AssertionError("gradcheck: Expected at least one of check_forward_ad and check_backward_ad to be True "
                             "(got both False). Omit check_backward_ad.")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    func, inputs = _of_values(func, inputs, masked)
    checked = _checked_inputs(inputs)
    try:
        outputs = _outputs(func(*inputs))
        recorded = [number for number, output in enumerate(outputs) if output.requires_grad]
        if not recorded:
            _check_constant(func, inputs, checked, eps)
            return True
        check = _Check(func, inputs, checked, recorded, eps, atol, rtol)
        if check_backward_ad:
            of_zeros = check.gradients_of_zeros(outputs, check_grad_dtypes)
            rng = np.random.default_rng(SEED)
            vectors = {number: _direction(outputs[number], rng) for number in recorded}
            if fast_mode:
                check.projections(outputs, vectors, rng)
                check.determinism(outputs, [(number, vectors[number]) for number in recorded], nondet_tol)
            else:
                check.jacobians(outputs)
                check.determinism(outputs, [(number, vector) for number in recorded
                                            for _, vector in _unit_vectors(outputs[number])], nondet_tol)
            check.linearity(of_zeros)
            if check_batched_grad:
                check.batches(outputs, rng)
            if check_undefined_grad:
                check.undefined(outputs, vectors)
        if check_forward_ad:
            check.forward_mode(outputs, fast_mode, check_batched_forward_grad, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@names_arguments
def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
                  check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True,
                  fast_mode=False, masked=False):
    """
    Compare second derivatives with central differences of gradients.

    Calls `gradcheck` for the function that computes the gradients of `func` from its inputs and the gradients of its
    outputs, with ``create_graph=True``.

    Parameters
    ----------
    func : callable
        As in `gradcheck`.
    inputs : Tensor or sequence
        As in `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        Gradients of the outputs that are differentiable. Default: random ones.
    gen_non_contig_grad_outputs : bool, default False
        Whether the random ones are non-contiguous.
    check_fwd_over_rev : bool, default False
        Whether to check forward mode over backward.
    check_rev_over_rev : bool, default True
        Whether to check backward over backward.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, \
fast_mode, masked
        As in `gradcheck`.

    Returns
    -------
    bool
        True if all second derivatives are right.

    Raises
    ------
    GradcheckError
        If a second derivative is wrong.

    Examples
    --------
    >>> x = cygrad.tensor([0.5, 2.0], dtype=cygrad.float64, requires_grad=True)
    >>> cygrad.autograd.gradgradcheck(cygrad.sin, x)
    True
    """
    if not check_rev_over_rev and not check_fwd_over_rev:
        raise AssertionError("gradgradcheck: Expected at least one of check_fwd_over_rev and check_rev_over_rev to be "
                             "True (got both False). Omit check_rev_over_rev.")
    func, inputs = _of_values(func, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), masked)
    if grad_outputs is None:
        outputs = [output for output in _outputs(func(*inputs)) if output.requires_grad]
        rng = np.random.default_rng(SEED)
        vectors = tuple(_random(output, rng, gen_non_contig_grad_outputs) for output in outputs)
    else:
        vectors = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(vectors)
    numbers = [number for number, value in enumerate(inputs) if isinstance(value, Tensor) and value.requires_grad]

    def gradients(*arguments):
        first, last = arguments[:len(arguments) - count], arguments[len(arguments) - count:]
        places = [first[number].requires_grad_() for number in numbers]          # in forward mode they do not
        outputs = [output for output in _outputs(func(*first)) if output.requires_grad]
        found = grad(outputs, places, last, create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(gradients, (*inputs, *vectors), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, fast_mode=fast_mode,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)


# ---- inputs and outputs

def _of_values(func, inputs, masked):
    """Return the function and its inputs, with sparse tensors replaced by their values."""
    sparse = {number: value for number, value in enumerate(inputs)
              if isinstance(value, Tensor) and value.layout is not STRIDED}
    if not sparse:
        return func, inputs
    for value in sparse.values():
        if not masked and value.detach().coalesce()._elements.numel() < value.numel():
            raise ValueError("gradcheck: the gradient of a sparse tensor has the indices of the tensor, so elements "
                             f"that are not there cannot be compared (got a tensor of layout {value.layout}). Pass "
                             "masked=True.")

    def of_values(*arguments):
        return func(*[sparse[number].with_values(value) if number in sparse else value
                      for number, value in enumerate(arguments)])
    return of_values, tuple(value._elements if number in sparse else value for number, value in enumerate(inputs))


def _checked_inputs(inputs):
    """Return the positions of the inputs that require grad."""
    checked = []
    for number, value in enumerate(inputs):
        if not isinstance(value, Tensor) or not value.requires_grad:
            continue
        if str(value.dtype).rpartition(".")[2] not in ("float64", "complex128"):
            warn_user(f"gradcheck: Input #{number} requires gradient and is not a double precision floating point or "
                      f"complex (got {value.dtype}). Differences are "
                      "inaccurate; use float64 or complex128.")
        if any(step == 0 and size > 1 for step, size in zip(value.stride(), value.shape, strict=True)):
            raise RuntimeError(f"gradcheck: The {number}th input has a dimension with stride 0 (got strides "
                             f"{value.stride()} for shape {tuple(value.shape)}). Call contiguous() on it first.")
        checked.append(number)
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient "
                         "(got none).")
    return checked


def _outputs(result):
    """Return the differentiable Tensors among the outputs, as a list."""
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    for number, value in enumerate(results):
        if isinstance(value, Tensor) and value.layout is not STRIDED:
            raise ValueError(f"gradcheck: Sparse output is not supported at gradcheck yet (got layout {value.layout} "
                             f"for output {number}). Return value.to_dense().")
    return [value for value in results
            if isinstance(value, Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)]


def _array(tensor):
    """Return the tensor's memory as an ndarray."""
    return tensor.detach().numpy()


def _flat(tensor):
    """Return a copy of the elements as a vector."""
    return np.array(_array(tensor)).reshape(-1)


def _components(values):
    """Split complex columns into two real ones: all real parts, then all imaginary parts."""
    return np.concatenate([values.real, values.imag], axis=-1) if np.iscomplexobj(values) else values


def _unit_vectors(output):
    """Yield (index of the component, vector for backward) for every real component of an output."""
    array = _array(output)
    for part, unit in enumerate((1, 1j) if np.iscomplexobj(array) else (1,)):
        for element in range(array.size):
            vector = np.zeros(array.shape, array.dtype)
            vector.reshape(-1)[element] = unit
            yield part * array.size + element, from_numpy(vector)


def _draw(like, rng):
    """Return random numbers between 0.5 and 1 (both parts, if complex), so that no entry of a Jacobian is hidden."""
    array = _array(like)
    values = rng.uniform(0.5, 1.0, array.shape)
    if np.iscomplexobj(array):
        values = values + 1j * rng.uniform(0.5, 1.0, array.shape)
    return np.asarray(values, dtype=array.dtype)


def _direction(like, rng):
    """Return a random vector for backward, in the shape of a tensor."""
    return from_numpy(_draw(like, rng))


def _random(like, rng, with_gaps):
    """Return a random gradient that requires grad itself."""
    values = np.asarray(_draw(like, rng) - 0.5)
    if with_gaps and values.ndim:
        values = np.repeat(values, 2, axis=-1)[..., ::2]
    return from_numpy(values).requires_grad_()


def _looked_at(func, inputs, numbers):
    """Return the elements (as vectors), shapes and dtypes of the outputs with these indices."""
    outputs = _outputs(func(*inputs))
    return [(_flat(outputs[number]), tuple(outputs[number].shape), outputs[number].dtype) for number in numbers]


def _differences(func, inputs, memory, step, eps, numbers):
    """Return central differences of the outputs for a step of `memory`, the elements of an input."""
    original = memory.copy()
    try:
        memory[...] = original + eps * step
        after = _looked_at(func, inputs, numbers)
        memory[...] = original - eps * step
        before = _looked_at(func, inputs, numbers)
    finally:
        memory[...] = original
    for number, (_, shape, dtype), (_, other, kind) in zip(numbers, after, before, strict=True):
        for what, found, expected in (("shape", shape, other), ("dtype", dtype, kind)):
            if found != expected:
                raise AssertionError(f"gradcheck: expected func to return outputs with the same {what} when inputs are "
                                     f"perturbed slightly (got {found} and {expected} for output {number}).")
    after, before = ([values for values, _, _ in part] for part in (after, before))
    return [(late - early) / (2 * eps) for late, early in zip(after, before, strict=True)]


def _numerical(func, inputs, number, eps, outputs):
    """Return for each output its Jacobian with respect to one input: rows input elements, columns output components."""
    memory = _array(inputs[number])
    step = np.zeros_like(memory)
    rows = []
    for place in np.ndindex(memory.shape):
        sides = []
        for unit in (1, 1j) if np.iscomplexobj(memory) else (1,):
            step[place] = unit
            found = _differences(func, inputs, memory, step, eps, outputs)
            sides.append([_components(values) for values in found])
        step[place] = 0
        rows.append([sides[0][j] + 1j * sides[1][j] if len(sides) == 2 else sides[0][j] for j in range(len(outputs))])
    return [np.array([row[j] for row in rows]) for j in range(len(outputs))]


def _check_constant(func, inputs, checked, eps):
    """Check that outputs that do not require grad are independent of the inputs."""
    numbers = range(len(_outputs(func(*inputs))))
    for number in checked:
        for output, jacobian in enumerate(_numerical(func, inputs, number, eps, numbers)):
            if jacobian.any():
                raise GradcheckError(f"gradcheck: Numerical gradient for function expected to be zero, as output "
                                     f"{output} does not require grad (got, for input {number},\n{jacobian}\n). "
                                     "Compute it by recorded operations.")


class _Undefined(Function):
    """Identity with an undefined gradient."""

    @staticmethod
    def forward(ctx, input):
        return input.view_as(input)

    @staticmethod
    def backward(ctx, grad_output):
        return None


class _Check:
    """Comparisons of `gradcheck` for one function at one point; each raises an error if it fails."""

    error = GradcheckError

    def __init__(self, func, inputs, checked, recorded, eps, atol, rtol):
        self.func, self.inputs, self.checked, self.recorded = func, inputs, checked, recorded
        self.eps, self.atol, self.rtol = eps, atol, rtol

    def backward(self, outputs, vectors):
        """Return gradients of all checked inputs as arrays, for {index of an output: vector}."""
        found = grad([outputs[number] for number in vectors], [self.inputs[number] for number in self.checked],
                     list(vectors.values()), retain_graph=True, allow_unused=True)
        return [np.zeros(_array(self.inputs[number]).shape) if gradient is None else np.array(_array(gradient))
                for number, gradient in zip(self.checked, found, strict=True)]

    def forward_mode(self, outputs, fast, batched, with_undefined):
        """Return derivatives along directions of the inputs, in forward mode."""
        self.like = {number: _array(outputs[number]) for number in self.recorded}
        forward = ForwardCheck(self, _outputs)

        def numerical(number):
            return _numerical(self.func, self.inputs, number, self.eps, self.recorded)

        def differences(number, step):
            return _differences(self.func, self.inputs, _array(self.inputs[number]), step, self.eps, self.recorded)
        if fast:
            forward.projections(numerical, _components, np.random.default_rng(SEED), _draw, differences)
        else:
            forward.jacobians(numerical, _components)
        if batched:
            forward.batches(np.random.default_rng(SEED), _draw)
        if with_undefined:
            forward.undefined(np.random.default_rng(SEED), _draw)

    def gradients_of_zeros(self, outputs, check_dtypes):
        """Check that gradients have the shape and dtype of their inputs; return them for gradients of zeros."""
        vectors = [from_numpy(np.zeros_like(_array(outputs[number]))) for number in self.recorded]
        found: Any = grad([outputs[number] for number in self.recorded],
                          [self.inputs[number] for number in self.checked], vectors, retain_graph=True,
                          allow_unused=True)
        for number, gradient in zip(self.checked, found, strict=True):
            if gradient is None:
                continue
            place = self.inputs[number]
            what = f"gradcheck: the gradient of input {number}"
            if tuple(gradient.shape) != tuple(place.shape):
                raise GradcheckError(f"{what} has the wrong shape (got {tuple(gradient.shape)}, expected "
                                     f"{tuple(place.shape)}).")
            if gradient.dtype != place.dtype and (check_dtypes or gradient.dtype.is_complex != place.dtype.is_complex):
                raise GradcheckError(f"{what} has the wrong dtype (got {gradient.dtype}, expected {place.dtype}).")
        return found

    def linearity(self, of_zeros):
        """Check that gradients for zeros are zeros."""
        for number, gradient in zip(self.checked, of_zeros, strict=True):
            if gradient is not None and _array(gradient).any():
                raise GradcheckError(f"gradcheck: backward not multiplied by grad_output: the gradient of input "
                                     f"{number} is not linear in those of the outputs (got\n{gradient}\nfor zeros, "
                                     "expected zeros).")

    def jacobians(self, outputs):
        """Compare every entry of every Jacobian."""
        for position, number in enumerate(self.checked):
            numerical = _numerical(self.func, self.inputs, number, self.eps, self.recorded)
            for output, expected in zip(self.recorded, numerical, strict=True):
                analytical = np.zeros((_array(self.inputs[number]).size, _components(_flat(outputs[output])).size),
                                      dtype=_array(self.inputs[number]).dtype)
                for component, vector in _unit_vectors(outputs[output]):
                    analytical[:, component] = self.backward(outputs, {output: vector})[position].reshape(-1)
                self.compare(number, output, analytical, expected.reshape(analytical.shape), self.atol)

    def projections(self, outputs, vectors, rng):
        """Compare one random product with each Jacobian; compare all its entries if one is wrong."""
        analytical = {output: self.backward(outputs, {output: vectors[output]}) for output in self.recorded}
        for position, number in enumerate(self.checked):
            step = _draw(self.inputs[number], rng)
            moved = _differences(self.func, self.inputs, _array(self.inputs[number]), step, self.eps, self.recorded)
            for output, difference in zip(self.recorded, moved, strict=True):
                vector = _flat(vectors[output])
                expected = np.vdot(vector, difference).real
                found = np.vdot(analytical[output][position], step).real
                # Each entry of the Jacobian can have an error of atol.
                atol = self.atol * max(np.abs(vector).sum() * np.abs(step).sum(), 1.0)
                if not abs(found - expected) <= atol + self.rtol * abs(expected):
                    self.jacobians(outputs)
                    self.compare(number, output, np.array([[found]]), np.array([[expected]]), atol)

    def compare(self, number, output, analytical, numerical, atol, what="the backward formula"):
        """Raise an error that shows both if they differ by more than the tolerances."""
        wrong = ~np.isclose(analytical, numerical, rtol=self.rtol, atol=atol)
        if not wrong.any():
            return
        row, column = np.argwhere(wrong)[0]
        raise GradcheckError(
            f"gradcheck: Jacobian {'' if what == 'the backward formula' else 'computed with forward mode '}mismatch "
            f"for output {output} with respect to input {number} in {wrong.sum()} of {wrong.size} entries (got "
            f"analytical:\n{analytical}\nexpected numerical:\n{numerical}\nfirst at element {row} of the input, "
            f"component {column} of the output: {analytical[row, column]} and {numerical[row, column]}). "
            f"Correct {what}.")

    def determinism(self, outputs, pairs, tolerance):
        """Check that a second backward returns equal gradients."""
        for output, vector in pairs:
            first = self.backward(outputs, {output: vector})
            second = self.backward(outputs, {output: vector})
            for number, before, after in zip(self.checked, first, second, strict=True):
                if not np.allclose(before, after, rtol=0, atol=tolerance, equal_nan=True):
                    raise GradcheckError(
                        f"gradcheck: Backward is not reentrant: the gradient of input {number} for output {output} "
                        f"differs between two runs (got\n{before}\nand\n{after}\nexpected a difference of at most "
                        f"{tolerance}). Let backward depend on its arguments only, or increase nondet_tol.")

    def batches(self, outputs, rng):
        """Check that results for a batch of vectors equal those for single vectors."""
        for output in self.recorded:
            vectors = [_draw(outputs[output], rng) for _ in range(3)]
            places = [self.inputs[number] for number in self.checked]
            try:
                batched = grad(outputs[output], places, from_numpy(np.stack(vectors)), retain_graph=True,
                               is_grads_batched=True, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError(f"gradcheck: failed while testing batched gradient of output "
                                     f"{output}, backward raised: {error}") from error
            single = [self.backward(outputs, {output: from_numpy(vector)}) for vector in vectors]
            for position, (number, found) in enumerate(zip(self.checked, batched, strict=True)):
                expected = np.stack([gradients[position] for gradients in single])
                if found is not None and not np.allclose(_array(found), expected, self.rtol, self.atol, equal_nan=True):
                    raise GradcheckError(f"gradcheck: the batched gradient of input {number} for output {output} is "
                                         f"wrong (got\n{_array(found)}\nexpected\n{expected}).")

    def undefined(self, outputs, vectors):
        """Check that undefined gradients of outputs are treated as zeros."""
        cut = {number: _Undefined.apply(outputs[number]) for number in self.recorded}
        zeros = {number: from_numpy(np.zeros_like(_array(outputs[number]))) for number in self.recorded}
        self.compare_undefined(cut, vectors, self.backward(outputs, zeros), "none of the outputs has")
        if len(self.recorded) < 2:
            return
        for output in self.recorded:
            others = {number: vectors[number] for number in self.recorded if number != output}
            for defined in ({output: vectors[output]}, others):
                expected = self.backward(outputs, {**zeros, **defined})
                self.compare_undefined(outputs, defined, expected, f"only the outputs {list(defined)} have")

    def compare_undefined(self, outputs, vectors, expected, which):
        """Raise an error if gradients for undefined gradients of outputs differ from those for zeros."""
        advice = ("gradcheck: undefined gradients are checked, too. Pass check_undefined_grad=False to skip this.")
        try:
            found = self.backward(outputs, vectors)
        except Exception as error:
            warn_user(advice)
            raise GradcheckError(f"gradcheck: Expected backward function to handle undefined output grads (got "
                                 f"{error!r} if {which} a gradient). Treat missing gradients as zeros in "
                                 "backward.") from error
        for number, gradient, wanted in zip(self.checked, found, expected, strict=True):
            if not np.allclose(gradient, wanted, self.rtol, self.atol, equal_nan=True):
                warn_user(advice)
                raise GradcheckError(f"gradcheck: the gradient of input {number} is wrong if {which} a gradient "
                                     f"(got\n{gradient}\nexpected, as for zeros,\n{wanted}). Treat missing gradients "
                                     "as zeros in backward.")
