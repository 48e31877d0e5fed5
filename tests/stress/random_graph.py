"""Random graphs over small integers, whose gradients plain NumPy computes exactly."""

import numpy as np

import cygrad


class RandomGraph:
    """
    Sums, differences, multiples and products with leaves, and the gradient of the sum of its last node.

    All numbers are integers far below 2**53, so float64 holds them exactly and the order of sums does not matter.
    """

    def __init__(self, seed, size, nodes=24, leaves=4):
        self.rng = np.random.default_rng(seed)
        self.values = [self.rng.integers(-1, 2, size) for _ in range(leaves)]
        self.leaves = [cygrad.tensor(v.astype(float)).requires_grad_() for v in self.values]
        self.tensors = list(self.leaves)
        self.recipe = [None] * leaves
        self.factors = {}                       # position -> factor of a hook
        for _ in range(nodes):
            self._add_node()
        self.total = self.tensors[-1].sum() + self.tensors[-2].sum()

    def _add_node(self):
        kind = self.rng.choice(["add", "sub", "scale", "product", "matrix"])
        i, j = (int(k) for k in self.rng.integers(max(0, len(self.tensors) - 8), len(self.tensors), 2))
        k = int(self.rng.integers(0, len(self.leaves)))
        a, b, leaf = self.tensors[i], self.tensors[j], self.leaves[k]
        if kind == "add":
            made, step = a + b, [(i, 1), (j, 1)]
        elif kind == "sub":
            made, step = a - b, [(i, 1), (j, -1)]
        elif kind == "scale":
            made, step = a * 2, [(i, 2)]
        elif kind == "product":
            made, step = a * leaf, [(i, self.values[k]), (k, self.values[i])]
        else:
            made, step = a.flip(0), [(i, "flip")]
        value = {"add": lambda: self.values[i] + self.values[j], "sub": lambda: self.values[i] - self.values[j],
                 "scale": lambda: self.values[i] * 2, "product": lambda: self.values[i] * self.values[k],
                 "matrix": lambda: self.values[i][::-1].copy()}[kind]()
        self.tensors.append(made)
        self.values.append(value)
        self.recipe.append(step)

    def hook(self, count):
        """Put hooks on some tensors that multiply their gradients."""
        for position in self.rng.choice(len(self.tensors), count, replace=False):
            factor = int(self.rng.integers(-1, 3))
            self.factors[int(position)] = factor
            self.tensors[position].register_hook(lambda grad, factor=factor: grad * factor)

    def expected(self):
        """The gradients of the leaves."""
        size = self.values[0].shape
        grads = [np.zeros(size, np.int64) for _ in self.tensors]
        grads[-1] += 1
        grads[-2] += 1
        for position in range(len(self.tensors) - 1, -1, -1):
            grads[position] *= self.factors.get(position, 1)
            for source, factor in self.recipe[position] or ():
                grads[source] += grads[position][::-1] if isinstance(factor, str) else grads[position] * factor
        assert max(np.abs(g).max() for g in grads) < 2 ** 50
        return grads[:len(self.leaves)]

    def found(self, **options):
        """The same by backward; zero for a leaf that nothing depends on."""
        grads = cygrad.autograd.grad(self.total, self.leaves, allow_unused=True, **options)
        return [np.zeros(v.shape) if g is None else g.numpy() for g, v in zip(grads, self.values, strict=False)]
