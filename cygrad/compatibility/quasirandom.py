"""``torch.quasirandom``: Sobol sequences, computed by SciPy."""

import numpy as np

import cygrad

__all__ = ["SobolEngine"]


class _Bits(np.random.Generator):
    """Random bits for SciPy from the default generator, in PyTorch's order."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(0))
        self._stream = None if seed is None else cygrad.Generator().manual_seed(seed)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        return cygrad.randint(low, size, generator=self._stream).numpy().astype(dtype)


class SobolEngine:
    """
    Points of a Sobol sequence in the unit cube.

    Parameters
    ----------
    dimension : int
        Dimension of the cube, at most 21201.
    scramble : bool
        Whether to scramble the points randomly.
    seed : int, optional
        Seed of scrambling; default: drawn from the default generator.
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension, scramble=False, seed=None):
        try:
            from scipy.stats import qmc
        except ImportError as error:
            raise ImportError("SobolEngine needs SciPy: pip install scipy") from error
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0

        class Sobol(qmc.Sobol):
            def _scramble(self):
                self.rng = _Bits(seed)
                super()._scramble()
        self._source = Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=seed)

    def draw(self, n=1, out=None, dtype=None):
        """Return the next `n` points, one per row."""
        parts = [n] if self.num_generated or not n else [1, n - 1]          # avoid SciPy's warning about powers of two
        points = np.concatenate([self._source.random(part) if part else np.empty((0, self.dimension))
                                 for part in parts])
        if not self.num_generated:                         # as in PyTorch, whose first point has the default dtype
            points[:1] = points[:1].astype(cygrad.get_default_dtype().numpy_dtype)
        self.num_generated += n
        result = cygrad.from_numpy(points).to(cygrad.get_default_dtype() if dtype is None else dtype)
        return result if out is None else out.resize_(result.shape).copy_(result)

    def draw_base2(self, m, out=None, dtype=None):
        """Return the next two to the power of `m` points."""
        total = self.num_generated + 2 ** m
        if total & (total - 1):
            raise ValueError(f"SobolEngine.draw_base2: the number of points must stay a power of 2 (got 2**{m} after "
                             f"{self.num_generated} points); use draw().")
        return self.draw(2 ** m, out, dtype)

    def reset(self):
        """Restart the sequence."""
        self._source.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Skip `n` points."""
        self._source.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self):
        scrambled, seed = ", scramble=True" * self.scramble, f", seed={self.seed}" * (self.seed is not None)
        return f"SobolEngine(dimension={self.dimension}{scrambled}{seed})"
