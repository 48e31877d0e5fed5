"""
Inputs and results of transforms.

A transform creates new tensors for its inputs, to distinguish them from all others. Under `vmap` these are always
batched (`strip`), so that one backward computes separate gradients for all entries.
"""

from itertools import count

import numpy as np

from cygrad._core.arrays.dtype import complex128, float64
from cygrad._core.creation.creation import tensor
from cygrad._core.creation.factories import zeros_like
from cygrad._core.dispatch import tangents
from cygrad._core.engine.engine import run_backward
from cygrad._core.engine.plan import order
from cygrad._core.graph.argument_errors import as_callable
from cygrad._core.graph.modes import enable_grad, inference_mode, is_grad_enabled
from cygrad._core.graph.node import AccumulateGrad
from cygrad._core.graph.tensor import Tensor
from cygrad.func.batched import active_levels, levels_of, restore, strip
from cygrad.utils.pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["Inputs", "as_arrays", "as_tensor", "differentiable", "gradients_of_entries", "like_given", "outputs_of",
           "plain", "pullback_of", "same_tree", "selected", "tensor_of", "with_aux"]

_numbers = count(1)                                     # of transforms, in the order of their start
ARRAYS = (np.ndarray, np.generic, float, complex)       # inputs and results of transforms besides Tensors


def tensor_of(value):
    """Return the Tensor for an array or a float or complex number; other values are returned unchanged."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc":
        return tensor(np.asarray(value))
    if type(value) is float or type(value) is complex:
        return tensor(value, dtype=float64 if type(value) is float else complex128)
    return value


def like_given(result, given):
    """
    Convert the result for an input to an array or a number if the input was one and no graph or batch needs a Tensor.
    """
    if not isinstance(given, ARRAYS) or type(result) is not Tensor or result.requires_grad or (
            tangents.current_level() is not None and tangents.tangent(result) is not None):
        return result
    array = result.numpy()
    if isinstance(given, np.ndarray) or array.ndim:
        return array
    return array[()] if isinstance(given, np.generic) else array.item()


def as_arrays(tree, given):
    """Convert results of all inputs: to arrays, and 0-dim ones to numbers, if no input is a Tensor."""
    if not given or not all(isinstance(leaf, ARRAYS) for leaf in given):
        return tree
    return tree_map(lambda leaf: like_given(leaf, 0.0), tree)


def as_tensor(operation, what, value):
    found = tensor_of(value)
    if not isinstance(found, Tensor):
        raise RuntimeError(f"{operation}: {what} must be floating point or complex Tensors, arrays or numbers (got "
                           f"{type(value).__name__}). Bind other arguments with functools.partial, or omit them from "
                           "argnums.")
    return found


def selected(operation, argnums, args):
    """Return the selected arguments, their positions, and whether it is a single one."""
    single = isinstance(argnums, int) and not isinstance(argnums, bool)
    if not single and (not isinstance(argnums, tuple) or not all(isinstance(number, int) for number in argnums)):
        raise RuntimeError(f"{operation}: argnums must be int or Tuple[int, ...] (got {argnums!r}).")
    places = (argnums,) if single else argnums
    if not places:
        raise RuntimeError(f"{operation}: argnums must be non-empty (got an empty tuple).")
    for place in places:
        if not -len(args) <= place < len(args):
            raise RuntimeError(f"{operation}: argnums is out of range (got {place}, but there are only "
                               f"{len(args)} positional inputs).")
    places = tuple(place % len(args) for place in places)
    if len(set(places)) < len(places):
        raise RuntimeError(f"{operation}: argnums must be unique (got {argnums}).")
    return places, tuple(args[place] for place in places), single


def at_places(func, places, args, kwargs):
    """Return the function of the arguments at these positions alone."""
    def of_chosen(*values):
        arguments = list(args)
        for place, value in zip(places, values, strict=True):
            arguments[place] = value
        return func(*arguments, **kwargs)
    return of_chosen


class Inputs:
    """Create new tensors for a tree of inputs."""

    def __init__(self, operation, tree):
        self.operation, self.levels, self.recorded = operation, list(active_levels()), is_grad_enabled()
        self.given, self.spec = tree_flatten(tree)
        self.places, self.needed, self.number = [], False, next(_numbers)
        with inference_mode(False):
            for leaf in self.given:
                held = strip(as_tensor(operation, "inputs", leaf), self.levels)
                if not differentiable(held):
                    raise RuntimeError(f"{operation}: only floating point and complex Tensors can require gradients "
                                       f"(got {held.dtype}). Convert it with to(), or omit it from argnums.")
                if held.is_inference():                      # which cannot require gradients
                    held = held.clone()
                self.needed = self.needed or held.requires_grad
                if held.requires_grad and (self.recorded or tangents.current_level() is None):
                    with enable_grad():                      # a pullback may be called where gradients are recorded
                        own = held.view_as(held)
                elif tangents.current_level() is None:
                    own = held.detach()
                else:                                        # which would lose its tangent
                    own = held.detach() if held.requires_grad else held
                    own = own.view_as(own)
                self.places.append(own if own.requires_grad else own.requires_grad_())
                own._transform = self.number
        self.tree = tree_unflatten([restore(place, self.levels) for place in self.places], self.spec)

    def outside(self, tree):
        """Detach results from the graph of this transform, but not from enclosing ones."""
        return tree_map(lambda leaf: self._outside(leaf) if isinstance(leaf, Tensor) else leaf, tree)

    def _outside(self, tensor):
        return tensor if not tensor.requires_grad or (self.recorded and self.leads_out([tensor])) else tensor.detach()

    def leads_out(self, tensors):
        """Return whether the graph has leaves other than the inputs of this transform and of ended inner ones."""
        if self.needed:
            return True
        roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        for node in order(roots) if roots else ():
            if type(node) is AccumulateGrad and self._is_outside(node.variable):
                return True
        return any(tensor.is_leaf and tensor.requires_grad and self._is_outside(tensor) for tensor in tensors)

    def _is_outside(self, leaf):
        return getattr(leaf, "_transform", 0) < self.number

    def pull(self, outputs, vectors, keep):
        """Return the gradients of outputs with respect to the inputs, as a list of batched tensors."""
        pairs = [(output, vector) for output, vector in zip(outputs, vectors, strict=True) if output.requires_grad]
        found = [None] * len(self.places)
        if pairs:
            outputs, vectors = [output for output, _ in pairs], [vector for _, vector in pairs]
            create = is_grad_enabled() and (any(vector.requires_grad for vector in vectors) or self.leads_out(outputs))
            found = run_backward(self.operation, outputs, vectors, keep or create, create, self.places, False, True)
            found = [gradient if create or gradient is None else plain(gradient) for gradient in found]
        return [zeros_like(place) if gradient is None else gradient
                for gradient, place in zip(found, self.places, strict=True)]

    def answer(self, gradients):
        """Return the gradients with the structure of the inputs, as arrays for arrays."""
        return self.formed([restore(gradient, self.levels) for gradient in gradients])

    def formed(self, results):
        """Return a result for each input with the structure of the inputs, as arrays for arrays."""
        return tree_unflatten(list(map(like_given, results, self.given)), self.spec)

    def returned(self, tree):
        """Return results of the function: arrays if there are no Tensors among the inputs."""
        return as_arrays(tree, self.given)


def gradients_of_entries(outputs, inputs, vectors, keep, create, allow_unused):
    """Compute ``autograd.grad`` under `vmap` of batched results: the gradients of each entry."""
    levels = list(active_levels())
    needed = [level for level in levels if any(level in levels_of(output) for output in outputs)]
    for number, place in enumerate(inputs):
        if not isinstance(place, Tensor) or any(level not in levels_of(place) for level in needed):
            raise RuntimeError(f"grad: under vmap, input {number} must be batched if the outputs are (got an input "
                               "that is the same for all entries). Use func.grad.")
    held = [strip(output, needed) for output in outputs]
    vectors = [strip(output.new_ones(()), needed) if vector is None else strip(vector, needed)
               for output, vector in zip(outputs, vectors, strict=True)]
    found = run_backward("grad", held, vectors, keep, create, [strip(place, needed) for place in inputs], False,
                         allow_unused)
    return [None if gradient is None else restore(gradient, needed) for gradient in found]


def plain(gradient):
    """Return a gradient outside of graphs."""
    return gradient.detach() if gradient.requires_grad else gradient


def differentiable(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def with_aux(operation, results, has_aux):
    """Return the output to differentiate and the auxiliary output."""
    if not has_aux:
        return results, None
    if not (isinstance(results, tuple) and len(results) == 2):
        raise RuntimeError(f"{operation}: with has_aux=True the function must return a pair (got "
                           f"{type(results).__name__}).")
    return results


def outputs_of(operation, tree):
    leaves, spec = tree_flatten(tree)
    if not leaves:
        raise RuntimeError(f"{operation}: Expected f to be a function that has non-empty output (got {tree!r}, "
                           "expected at least one Tensor).")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{operation}: the function is expected to return only tensors (got type {type(leaf)}).")
    return leaves, spec


def same_tree(operation, what, spec, tree):
    leaves, found = tree_flatten(tree)
    if found != spec:
        raise RuntimeError(f"{operation}: {what}: Expected pytree structure {spec!r} (got {found!r}).")
    return leaves


def pullback_of(operation, func, primals, has_aux):
    as_callable(operation, "func", func)
    inputs = Inputs(operation, tuple(primals))
    with inference_mode(False):
        results, aux = with_aux(operation, func(*inputs.tree), has_aux)
        leaves, spec = outputs_of(operation, results)
        held = [strip(leaf, inputs.levels) for leaf in leaves]
    return inputs, inputs.outside(results), inputs.outside(aux), held, spec
