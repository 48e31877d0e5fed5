"""
Pruning of parameters by masks.

Pruning replaces the parameter ``weight`` by the parameter ``weight_orig`` and the buffer ``weight_mask``, and computes
``weight`` as their product before each forward. Further pruning applies to the remaining elements; `remove` makes it
permanent.
"""

import numbers
from typing import Any

import cygrad
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import names_arguments

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]
__dir__ = _public_dir(__name__)


class BasePruningMethod:
    """
    Base class of pruning methods, and the hook that computes the parameter before each forward.

    A subclass defines ``compute_mask(t, default_mask)`` and ``PRUNING_TYPE``: "unstructured" masks get the remaining
    elements, "structured" ones the channels that are not entirely pruned, "global" ones all elements.

    Examples
    --------
    >>> issubclass(nn.utils.prune.L1Unstructured, nn.utils.prune.BasePruningMethod)
    True
    """

    _tensor_name: Any = None
    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        """Compute the parameter."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        """Return the mask for scores `t`, zero where `default_mask` is zero; subclasses define it."""
        raise NotImplementedError(f"compute_mask: {type(self).__name__} does not define it.")

    def apply_mask(self, module):
        """Return the product of the parameter and its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"{type(self).__name__}: the module is not pruned. Call apply() first.")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """
        Prune a parameter of a module.

        Parameters
        ----------
        module : Module
        name : str
            Name of the parameter.
        *args, **kwargs
            Arguments of the class.
        importance_scores : Tensor, optional
            Scores to use instead of the values of the parameter.

        Returns
        -------
        BasePruningMethod
        """
        method, former = cls(*args, **kwargs), _found(module, name)
        method._tensor_name = name
        value = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != value.shape:
            raise AssertionError(f"{cls.__name__}: importance_scores must have the shape of the parameter (got "
                                 f"{tuple(importance_scores.shape)}, expected {tuple(value.shape)}).")
        scores = value if importance_scores is None else importance_scores
        if former is None:
            mask = method.compute_mask(scores.detach(), default_mask=cygrad.ones_like(scores).detach())
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", value)
        else:
            key, before = former
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores.detach(), default_mask=getattr(module, f"{name}_mask").detach())
            del module._forward_pre_hooks[key]
            method = container
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """Return a tensor times its mask."""
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, cygrad.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Make the pruning permanent: store the product as the parameter and remove the mask."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"{type(self).__name__}: the module is not pruned. Call apply() first.")
        pruned = self.apply_mask(module)
        parameter = module._parameters.pop(f"{name}_orig")
        parameter.data = pruned.detach()
        del module._buffers[f"{name}_mask"]
        if hasattr(module, name):
            delattr(module, name)
        setattr(module, name, parameter)


class PruningContainer(BasePruningMethod):
    """
    Sequence of pruning methods of one parameter.

    Parameters
    ----------
    *methods : BasePruningMethod

    Examples
    --------
    >>> layer = nn.Linear(4, 2)
    >>> for _ in range(2):
    ...     layer = nn.utils.prune.random_unstructured(layer, "weight", amount=1)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """

    def __init__(self, *methods):
        self._pruning_methods: tuple = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"PruningContainer: expected a BasePruningMethod (got {type(method).__name__}).")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise ValueError("PruningContainer: all methods must prune the same parameter (got one for "
                             f"{method._tensor_name!r}, expected {self._tensor_name!r}).")
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """Combine the current mask with that of the last method for the remaining elements."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            others = [other for other in range(t.ndim) if other != dim]
            left = [slice(None)] * t.ndim
            left[dim] = mask.sum(others) != 0
            left = tuple(left)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"PruningContainer: unknown PRUNING_TYPE {method.PRUNING_TYPE!r} of "
                             f"{type(method).__name__}.")
        mask = mask.clone()
        mask[left] = method.compute_mask(t[left], mask[left])
        return mask


class Identity(BasePruningMethod):
    """
    Prune no elements, but create the mask.

    Examples
    --------
    >>> nn.utils.prune.Identity.apply(nn.Linear(2, 1), "weight").compute_mask(cygrad.ones(2), cygrad.ones(2))
    tensor([1., 1.])
    """

    def compute_mask(self, t, default_mask):
        """Return the mask unchanged."""
        return default_mask


class _Amount(BasePruningMethod):
    """Prune an absolute number or a fraction of the elements or channels."""

    def __init__(self, amount):
        if not isinstance(amount, numbers.Real) or (
                not 0 <= float(amount) <= 1 if not isinstance(amount, numbers.Integral) else amount < 0):
            raise ValueError(f"{type(self).__name__}: amount must be a number of elements or a fraction from 0.0 to "
                             f"1.0 (got {amount!r}).")
        self.amount = amount

    def count(self, size):
        """Return the number of elements to prune."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"{type(self).__name__}: amount must not exceed the number of elements to prune (got "
                             f"{self.amount}, expected at most {size}).")
        return self.amount


class RandomUnstructured(_Amount):
    """
    Prune random elements.

    Parameters
    ----------
    amount : int or float
        Number or fraction to prune.

    Examples
    --------
    >>> (nn.utils.prune.RandomUnstructured(amount=1).prune(cygrad.ones(2, 2)) == 0).sum()
    tensor(1)
    """

    def compute_mask(self, t, default_mask):
        """Return the mask with random elements set to zero."""
        mask, count = default_mask.clone(), self.count(t.numel())
        if count:
            mask.view(-1)[cygrad.topk(cygrad.rand_like(t).view(-1), count).indices] = 0
        return mask


class L1Unstructured(_Amount):
    """
    Prune the elements with the smallest absolute values.

    Parameters
    ----------
    amount : int or float
        Number or fraction to prune.

    Examples
    --------
    >>> nn.utils.prune.L1Unstructured(amount=1).prune(cygrad.tensor([3.0, -1.0]))
    tensor([3., -0.])
    """

    def compute_mask(self, t, default_mask):
        """Return the mask without the smallest elements."""
        mask, count = default_mask.clone(), self.count(t.numel())
        if count:
            mask.view(-1)[cygrad.topk(cygrad.abs(t).reshape(-1), count, largest=False).indices] = 0
        return mask


class _Structured(_Amount):
    """Prune channels along a dimension by a score."""

    PRUNING_TYPE = "structured"
    kept: Any                  # (tensor, count) -> mask of channels, defined by subclasses

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        """Return the mask without some channels."""
        if t.ndim < 2:
            raise ValueError(f"{type(self).__name__}: expected a parameter with at least two dimensions (got shape "
                             f"{tuple(t.shape)}). Use an unstructured method.")
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"{type(self).__name__}: there is no dimension {self.dim} (got shape {tuple(t.shape)}).")
        count = self.count(t.shape[self.dim])
        if not count:
            return default_mask
        shape = [1] * t.ndim
        shape[self.dim] = -1
        return default_mask * self.kept(t, count).to(default_mask.dtype).reshape(shape)


class RandomStructured(_Structured):
    """
    Prune random channels.

    Parameters
    ----------
    amount : int or float
        Number or fraction to prune.
    dim : int, default -1
        Dimension of the channels.

    Examples
    --------
    >>> (nn.utils.prune.RandomStructured(amount=1).prune(cygrad.ones(2, 2)) == 0).sum()
    tensor(2)
    """

    def kept(self, t, count):
        """Return the mask of kept channels."""
        draws = cygrad.rand(t.shape[self.dim])
        return draws > draws.kthvalue(count).values


class LnStructured(_Structured):
    """
    Prune the channels with the smallest norms.

    Parameters
    ----------
    amount : int or float
        Number or fraction to prune.
    n : int, float, "fro" or "nuc"
        Order of the norm.
    dim : int, default -1
        Dimension of the channels.

    Examples
    --------
    >>> nn.utils.prune.LnStructured(amount=1, n=2, dim=0).prune(cygrad.tensor([[3.0, 1.0], [0.1, 0.2]]))
    tensor([[3., 1.],
            [0., 0.]])
    """

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t, count):
        """Return the mask of kept channels."""
        others = [dim for dim in range(t.ndim) if dim != self.dim % t.ndim]
        norms = cygrad.norm(t, p=self.n, dim=others)
        kept = cygrad.zeros(t.shape[self.dim])
        kept[cygrad.topk(norms, t.shape[self.dim] - count).indices] = 1
        return kept


class CustomFromMask(BasePruningMethod):
    """
    Prune by a given mask.

    Parameters
    ----------
    mask : Tensor

    Examples
    --------
    >>> nn.utils.prune.CustomFromMask(cygrad.tensor([1, 0])).prune(cygrad.tensor([3.0, 4.0]))
    tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Return the product of both masks."""
        return default_mask * self.mask.to(default_mask.dtype)


@names_arguments
def identity(module, name):
    """
    Create the mask of a parameter without pruning and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.identity(nn.Linear(4, 2), "weight")
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight_orig']
    """
    Identity.apply(module, name)
    return module


@names_arguments
def random_unstructured(module, name, amount):
    """
    Prune random elements of a parameter (`RandomUnstructured`) and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 2), "weight", amount=3)
    >>> (layer.weight == 0).sum()
    tensor(3)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


@names_arguments
def l1_unstructured(module, name, amount, importance_scores=None):
    """
    Prune the smallest elements of a parameter (`L1Unstructured`) and return the module.

    Examples
    --------
    >>> from cygrad.nn.utils import prune
    >>> prune.l1_unstructured(cygrad.nn.Linear(2, 3), "weight", 0.5).weight_mask.sum()
    tensor(3.)
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@names_arguments
def random_structured(module, name, amount, dim):
    """
    Prune random channels of a parameter (`RandomStructured`) and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.random_structured(nn.Linear(4, 2), "weight", amount=1, dim=0)
    >>> (layer.weight == 0).all(1).sum()
    tensor(1)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


@names_arguments
def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """
    Prune the channels with the smallest norms (`LnStructured`) and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.ln_structured(nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
    >>> (layer.weight == 0).all(1).sum()
    tensor(1)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@names_arguments
def custom_from_mask(module, name, mask):
    """
    Prune a parameter by a mask and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 1), "weight", cygrad.tensor([[1, 0]]))
    >>> layer.weight[0, 1] == 0
    tensor(True)
    """
    CustomFromMask.apply(module, name, mask)
    return module


@names_arguments
def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """
    Prune several parameters as one concatenated tensor.

    Parameters
    ----------
    parameters : iterable of (Module, str)
    pruning_method : type
        An unstructured `BasePruningMethod`.
    importance_scores : dict, optional
        (module, name) -> Tensor.
    **kwargs
        Arguments of the class.

    Examples
    --------
    >>> layers = nn.Linear(4, 2), nn.Linear(2, 4)
    >>> nn.utils.prune.global_unstructured([(layer, "weight") for layer in layers],
    ...                                    nn.utils.prune.L1Unstructured, amount=6)
    >>> sum((layer.weight == 0).sum() for layer in layers)
    tensor(6)
    """
    parameters, scores = list(parameters), importance_scores or {}
    flat = cygrad.cat([scores.get((module, name), getattr(module, name)).detach().reshape(-1)
                       for module, name in parameters])
    masks = cygrad.cat([getattr(module, f"{name}_mask", cygrad.ones_like(getattr(module, name))).detach().reshape(-1)
                        for module, name in parameters])
    container, method = PruningContainer(), pruning_method(**kwargs)
    method._tensor_name = "parameters"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: only unstructured methods are possible (got {pruning_method.__name__}, "
                        f"which is {method.PRUNING_TYPE}).")
    container.add_pruning_method(method)
    mask, begin = container.compute_mask(flat, masks), 0
    for module, name in parameters:
        value = getattr(module, name)
        custom_from_mask(module, name, mask[begin:begin + value.numel()].view_as(value))
        begin += value.numel()


def _found(module, name):
    """Return id and hook of the pruning of a parameter, or None."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


@names_arguments
def remove(module, name):
    """
    Make the pruning of a parameter permanent and return the module.

    Examples
    --------
    >>> layer = nn.utils.prune.identity(nn.Linear(4, 2), "weight")
    >>> sorted(name for name, _ in nn.utils.prune.remove(layer, "weight").named_parameters())
    ['bias', 'weight']
    """
    found = _found(module, name)
    if found is None:
        raise ValueError(f"remove: the parameter {name!r} of this {type(module).__name__} is not pruned.")
    found[1].remove(module)
    del module._forward_pre_hooks[found[0]]
    return module


@names_arguments
def is_pruned(module):
    """
    Return whether a parameter of the module or a descendant is pruned.

    Examples
    --------
    >>> nn.utils.prune.is_pruned(nn.utils.prune.identity(nn.Linear(4, 2), "weight"))
    True
    """
    return any(isinstance(hook, BasePruningMethod)
               for part in module.modules() for hook in part._forward_pre_hooks.values())
