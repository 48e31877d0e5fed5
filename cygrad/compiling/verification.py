"""``compile(..., verify=True)``: run the function next to its program and compare all visible effects."""

import cygrad
from cygrad import Tensor
from cygrad._core.graph.inplace import set_version
from cygrad.compiling.structures import flatten

__all__ = ["State", "compare"]


class State:
    """
    Elements, versions and gradients of tensors, and states of generators.

    Parameters
    ----------
    tensors : list of Tensor
    generators : list of Generator
    """

    def __init__(self, tensors, generators):
        self.tensors, self.generators = tensors, [(each, each.get_state()) for each in generators]
        self.kept = [(tensor, *snapshot(tensor), tensor.grad if tensor.is_leaf else None) for tensor in tensors]
        self.gradients = [() if gradient is None else snapshot(gradient) for *_, gradient in self.kept]

    def restore(self):
        """Restore the saved state."""
        with cygrad.no_grad():
            for (tensor, elements, version, gradient), former in zip(self.kept, self.gradients, strict=True):
                put(tensor, elements, version)
                if tensor.is_leaf:
                    tensor.grad = gradient
                if gradient is not None:
                    put(gradient, *former)
        for generator, state in self.generators:
            generator.set_state(state)


def snapshot(tensor):
    """Return elements and version of a tensor."""
    return tensor.detach().clone(), 0 if tensor.is_inference() else tensor._version


def put(tensor, elements, version):
    """Set elements and version of a tensor."""
    if not is_bit_identical(tensor, elements):
        tensor.data.copy_(elements)
    set_version(tensor, version)


def outcome(result, tensors, generators, inputs, first):
    """Return all visible effects of a call; `first`: versions before the call."""
    leaves, structure, _ = flatten((result,), {})
    seen = [("the structure of the result", structure)]
    for number, leaf in enumerate(leaves):
        seen.append((f"result {number}", observed(leaf) if isinstance(leaf, Tensor) else leaf))
    for number, (tensor, version) in enumerate(zip(tensors, first, strict=True)):
        seen.append((f"tensor {number} of shape {tuple(tensor.shape)}",
                     (*observed(tensor)[:-1], 0 if version is None else tensor._version - version)))
        gradient = tensor.grad if tensor.is_leaf else None
        seen.append((f".grad of tensor {number}", None if gradient is None else observed(gradient)[:-1]))
    seen += [(f"generator {number}", observed(each.get_state())) for number, each in enumerate(generators)]
    roots = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.grad_fn is not None and not any(
        leaf is tensor for tensor in tensors)]
    if roots and inputs and cygrad.is_grad_enabled():
        try:
            gradients = cygrad.autograd.grad(roots, inputs, [cygrad.ones_like(root) for root in roots],
                                             retain_graph=True, allow_unused=True)
            seen += [(f"gradient of tensor {number}", None if gradient is None else observed(gradient)[:-1])
                     for number, gradient in enumerate(gradients)]
        except RuntimeError as error:
            seen.append(("the backward of the result", type(error)))
    return seen


def observed(tensor):
    """Return the visible properties of a tensor: elements last but one, version last."""
    return (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad, tensor.is_leaf,
            tensor.detach().clone(), -1 if tensor.is_inference() else tensor._version)


def is_bit_identical(a, b):
    """Return whether the elements of two tensors are bit-identical. All NaN are equal."""
    a, b = a.detach(), b.detach()
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return bool(((a == b) | ((a != a) & (b != b))).all()) and bool(
            (cygrad.signbit(a.real if a.dtype.is_complex else a)
             == cygrad.signbit(b.real if b.dtype.is_complex else b))[a.isfinite()].all())
    return cygrad.equal(a, b)


def agree(expected, found, close):
    """Return whether two values are equal; `close`: up to rounding."""
    if type(expected) is not tuple or not any(isinstance(part, Tensor) for part in expected):
        return expected == found or (expected != expected and found != found)
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, Tensor):
            if not (cygrad.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True) if close and a.dtype.is_floating_point
                    else is_bit_identical(a, b)):
                return False
        elif a != b:
            return False
    return True


def compare(function, program, variant, args, kwargs, close):
    """
    Run a function, then its program on the same state; return the program's result and a difference or None.

    Parameters
    ----------
    function, program : callable
    variant : Variant
        Function that the program executes.
    args, kwargs
        Arguments of the call.
    close : bool
        Whether to allow rounding differences.
    """
    tensors = [leaf for leaf in flatten(args, kwargs)[0] if isinstance(leaf, Tensor)]
    former = [(items, key, items.get(key)) for items, key in variant.state]
    attributes = [value for *_, value in former if isinstance(value, Tensor)]
    tensors = [*{id(tensor): tensor for tensor in [*tensors, *variant.constants, *attributes]}.values()]
    generators = [*{id(each): each for each in [cygrad.random.default_generator, *variant.generators()]}.values()]
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    first = [None if tensor.is_inference() else tensor._version for tensor in tensors]
    state = State(tensors, generators)
    expected = outcome(function(*args, **kwargs), tensors, generators, inputs, first)
    changed = variant.guards.failed()
    state.restore()
    for items, key, value in former:
        items[key] = value
    result = program(*args, **kwargs)
    if changed is not None:
        return result, f"the function changes {changed}, and its program does not"
    found = outcome(result, tensors, generators, inputs, first)
    if len(expected) != len(found):
        return result, "the number of results"
    return result, next((name for (name, a), (_, b) in zip(expected, found, strict=True) if not agree(a, b, close)),
                        None)
