"""Calls of a Python function and products with its Jacobian, for `functional`."""

from cygrad._core.creation.factories import eye, zeros, zeros_like
from cygrad._core.graph.modes import enable_grad, set_grad_enabled
from cygrad._core.graph.tensor import Tensor
from cygrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from cygrad.autograd.run import grad

_OUTPUTS = "outputs of the user-provided function"


def _tensors(operation, what, value):
    """Return whether a value is a tuple, and the value as a tuple of Tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for number, entry in enumerate(values):
        if not isinstance(entry, Tensor):
            which = f"{type(entry).__name__} at index {number}" if is_tuple else type(entry).__name__
            raise TypeError(f"{operation}: The {what} given to {operation} must be either a Tensor or a tuple of "
                            f"Tensors (got {which}).")
    return is_tuple, values


def _check_requires_grad(operation, strict, outputs):
    """Check that all outputs require grad if strict."""
    for number, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(f"{operation}: Output {number} of the user-provided function does not require "
                               "gradients, which strict=True forbids. Compute it from the inputs by recorded "
                               "operations.")


def _fresh(tensor, create_graph, requires_grad):
    """Return the values as a new Tensor, to exclude other uses of the original."""
    if create_graph and tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_(requires_grad)


def _pull(outputs, places, vectors, create_graph, retain_graph=None, batched=False):
    """Return the gradients of the differentiable outputs; None for independent inputs."""
    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(output, vector) for output, vector in zip(outputs, vectors, strict=True)
             if output is not None and output.requires_grad]
    if not pairs:
        return (None,) * len(places)
    return grad([output for output, _ in pairs], places, [vector for _, vector in pairs], retain_graph=retain_graph,
                create_graph=create_graph, allow_unused=True, is_grads_batched=batched)


class Gradient:
    """Return the gradient of a scalar function as a function that stores the value."""

    def __init__(self, operation, func, strict):
        self.operation, self.func, self.strict = operation, func, strict
        self.output = None

    def __call__(self, *places):
        is_tuple, self.output = _tensors(self.operation, _OUTPUTS, self.func(*places))
        if is_tuple or self.output[0].numel() != 1:
            found = (f"return a single Tensor (got a tuple of {len(self.output)})" if is_tuple
                     else f"contain a single element (got shape {tuple(self.output[0].shape)})")
            what = "function" if is_tuple else "Tensor returned by the function"
            raise RuntimeError(f"{self.operation}: The {what} given to {self.operation} should {found}. Sum its "
                               "elements or select one.")
        _check_requires_grad(self.operation, self.strict, self.output)
        gradients = _pull(self.output, places, None, True)
        for number, gradient in enumerate(gradients):
            if self.strict and gradient is None:
                raise RuntimeError(f"{self.operation}: The output of the user-provided function is independent of "
                                   f"input {number}, which strict=True forbids. Pass strict=False to get zeros.")
            if self.strict and not gradient.requires_grad:
                raise RuntimeError(f"{self.operation}: the jacobian of the user-provided function with respect to "
                                   f"input {number} is independent of the input, which strict=True forbids. Pass "
                                   "strict=False to get zeros.")
        return tuple(zeros_like(place) if gradient is None else gradient
                     for place, gradient in zip(places, gradients, strict=True))


class FunctionCall:
    """One call of a function at one point, and its derivatives."""

    def __init__(self, operation, func, inputs, create_graph, strict):
        self.operation, self.create_graph, self.strict = operation, create_graph, strict
        with enable_grad():
            self.inputs_are_tuple, inputs = _tensors(operation, "inputs", inputs)
            if not inputs:
                raise RuntimeError(f"{operation}: inputs is empty (got an empty tuple, expected Tensors).")
            self.places = tuple(_fresh(entry, create_graph, True) for entry in inputs)
            self.outputs_are_tuple, self.outputs = _tensors(operation, _OUTPUTS, func(*self.places))
        _check_requires_grad(operation, strict, self.outputs)

    def answer(self, tensors, is_tuple=None):
        """Return results, detached unless create_graph, and as a tuple if the inputs are a tuple."""
        is_tuple = self.inputs_are_tuple if is_tuple is None else is_tuple
        tensors = tuple(tensor if self.create_graph else tensor.detach() for tensor in tensors)
        return tensors if is_tuple else tensors[0]

    def vector(self, v, like, what):
        """Return the vector of a product, with its shapes checked; None means 1."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"{self.operation}: The vector v can only be None if the "
                                   + ("input to the user-provided function is" if what == "input" else
                                      "user-provided function returns")
                                   + " a single Tensor with a single element (got shape "
                                   + f"{', '.join(str(tuple(place.shape)) for place in like)}). Pass a v of that "
                                     "shape.")
            return None
        _, v = _tensors(self.operation, "v", v)
        if len(v) != len(like):
            expected = "a single Tensor" if len(like) == 1 else f"{len(like)} Tensors"
            raise RuntimeError(f"{self.operation}: The given v should contain {expected} (got {len(v)}), as the "
                               f"{what}.")
        for number, (vector, place) in enumerate(zip(v, like, strict=True)):
            if tuple(vector.shape) != tuple(place.shape):
                entry = f"Entry {number} in " if len(like) > 1 else ""
                raise RuntimeError(f"{self.operation}: {entry}v has invalid size: should be {place.shape} but got "
                                   f"{vector.shape}, which is not the shape of the {what}.")
        return tuple(_fresh(vector, self.create_graph, False) for vector in v)

    def zeros_for(self, gradients, like, what):
        """Return zeros for missing gradients; in strict mode, raise an error for missing and constant gradients."""
        for number, gradient in enumerate(gradients):
            if self.strict and (gradient is None or (self.create_graph and not gradient.requires_grad)):
                which = "hessian" if self.operation in ("hvp", "vhp") else "jacobian"
                which, also = ("output", "") if gradient is None else (which, " with create_graph=True")
                raise RuntimeError(f"{self.operation}: The {which} of the user-provided function is independent of "
                                   f"{what} {number}, which strict=True forbids{also}. Pass strict=False to get it.")
        return tuple(zeros_like(place) if gradient is None else gradient
                     for place, gradient in zip(like, gradients, strict=True))

    def vector_times_jacobian(self, v):
        """Return ``v J``, of the shapes of the inputs."""
        with enable_grad():
            v = self.vector(v, self.outputs, "output")
            return self.zeros_for(_pull(self.outputs, self.places, v, self.create_graph), self.places, "input")

    def jacobian_times_vector(self, v):
        """Return ``J v``, of the shapes of the outputs: the derivative along v of ``u J``, which is linear in u."""
        with enable_grad():
            v = self.vector(v, self.places, "input")
            u = tuple(zeros_like(output).requires_grad_() for output in self.outputs)
            products = _pull(self.outputs, self.places, u, True)
            for number, product in enumerate(products):
                if self.strict and (product is None or not product.requires_grad):
                    raise RuntimeError(f"{self.operation}: The output of the user-provided function is independent of "
                                       f"input {number}, which strict=True forbids. Pass strict=False to get zeros.")
            return self.zeros_for(_pull(products, u, v, self.create_graph), self.outputs, "output")

    def jacobian(self, vectorize):
        """Return a Tensor for each output and each input, whose rows are products with unit vectors."""
        return tuple(self.rows(output, number, vectorize) for number, output in enumerate(self.outputs))

    def rows(self, output, number, vectorize):
        """Return the Jacobian of one output with respect to each input."""
        from cygrad import stack
        shape, count = tuple(output.shape), output.numel()
        if output.dtype.is_complex and not vectorize:
            raise RuntimeError(f"{self.operation}: output {number} is complex (got {output.dtype}, expected a real "
                               "one). Differentiate its real and imaginary parts, or its view_as_real().")
        units = eye(count, dtype=output.dtype).reshape((count, *shape))
        if vectorize and count:
            return self.batched_rows(output, units)
        with enable_grad():
            rows = [self.row(output, number, units[unit]) for unit in range(count)]
            found = [stack([row[place] for row in rows]).reshape(shape + tuple(self.places[place].shape)) if rows
                     else zeros(shape + tuple(self.places[place].shape), dtype=self.places[place].dtype)
                     for place in range(len(self.places))]
        return tuple(entry if self.create_graph else entry.detach() for entry in found)

    def batched_rows(self, output, units):
        """Return the Jacobians of all outputs by one backward for all unit vectors."""
        with enable_grad():
            found = _pull((output,), self.places, (units,), self.create_graph, True, True)
            found = [zeros(tuple(output.shape) + tuple(place.shape), dtype=place.dtype) if block is None
                     else block.reshape(tuple(output.shape) + tuple(place.shape))
                     for block, place in zip(found, self.places, strict=True)]
        return tuple(entry if self.create_graph else entry.detach() for entry in found)

    def batched_columns(self, func, number):
        """Return the derivatives of all outputs along all unit vectors of an input, as last dimension."""
        import cygrad
        place = self.places[number]

        def of_places(*values):
            outputs = func(*values)
            return outputs if isinstance(outputs, tuple) else (outputs,)

        def column(unit):
            directions = [unit if which == number else zeros_like(value) for which, value in enumerate(self.places)]
            return cygrad.func.jvp(of_places, self.places, tuple(directions))[1]

        units = eye(place.numel(), dtype=place.dtype).reshape((place.numel(), *place.shape))
        with enable_grad():
            found = cygrad.func.vmap(column, out_dims=-1)(units)
            return [block.reshape(tuple(output.shape) + tuple(place.shape)) if self.create_graph
                    else block.detach().reshape(tuple(output.shape) + tuple(place.shape))
                    for block, output in zip(found, self.outputs, strict=True)]

    def jacobian_by_columns(self, func, vectorize):
        """Compute the Jacobian in forward mode, one column per unit vector."""
        from cygrad import stack
        if vectorize and all(place.numel() and not place.dtype.is_complex for place in self.places):
            return tuple(zip(*[self.batched_columns(func, place) for place in range(len(self.places))], strict=True))
        columns = [self.columns(func, place) for place in range(len(self.places))]
        rows = []
        for number, output in enumerate(self.outputs):
            row = []
            for place, found in zip(self.places, columns, strict=True):
                shape = tuple(output.shape) + tuple(place.shape)
                with set_grad_enabled(self.create_graph):
                    row.append(stack([column[number] for column in found], -1).reshape(shape) if found
                               else zeros(shape, dtype=output.dtype))
            rows.append(tuple(row))
        return tuple(rows)

    def columns(self, func, number):
        """Return the derivatives of all outputs along each element of an input."""
        place, found = self.places[number], []
        if place.dtype.is_complex:
            raise RuntimeError(f"{self.operation}: input {number} is complex (got {place.dtype}, expected a real one "
                               "for forward mode). Pass its real and imaginary parts as inputs.")
        units = eye(place.numel(), dtype=place.dtype).reshape((place.numel(), *place.shape))
        for unit in range(place.numel()):
            with dual_level(), enable_grad():
                arguments = list(self.places)
                arguments[number] = make_dual(place, units[unit])
                outputs = func(*arguments)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                column = [unpack_dual(output).tangent for output in outputs]
            found.append([zeros_like(output) if tangent is None else tangent if self.create_graph else tangent.detach()
                          for output, tangent in zip(outputs, column, strict=True)])
        return found

    def row(self, output, number, unit):
        """Return the derivative of one element with respect to each input."""
        gradients = _pull((output,), self.places, (unit,), self.create_graph, retain_graph=True)
        for place, gradient in enumerate(gradients):
            if self.strict and gradient is None:
                raise RuntimeError(f"{self.operation}: Output {number} of the user-provided function is independent "
                                   f"of input {place}, which strict=True forbids. Pass strict=False to get zeros.")
        return self.zeros_for(gradients, self.places, "input")
