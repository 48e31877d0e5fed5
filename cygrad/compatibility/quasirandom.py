"""``torch.quasirandom``: Sobol's sequence, whose numbers come from SciPy."""

import cygrad

__all__ = ["SobolEngine"]


class SobolEngine:
    """
    Points that fill a cube evenly.

    Parameters
    ----------
    dimension : int
        Of the cube, at most 21201.
    scramble : bool
        Whether the points are moved at random.
    seed : int, optional
        For that; a number of the default generator by default.
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension, scramble=False, seed=None):
        try:
            from scipy.stats import qmc
        except ImportError as error:
            raise ImportError("SobolEngine needs SciPy: pip install scipy") from error
        if scramble and seed is None:
            seed = int(cygrad.randint(2 ** 31, ()))
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        self._source = qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=seed)

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points, one in each row."""
        points = self._source.random(n) if n else self._source.random(1)[:0]
        self.num_generated += n
        result = cygrad.from_numpy(points).to(cygrad.get_default_dtype() if dtype is None else dtype)
        return result if out is None else out.resize_(result.shape).copy_(result)

    def draw_base2(self, m, out=None, dtype=None):
        """The next two to the power of `m` points."""
        return self.draw(2 ** m, out, dtype)

    def reset(self):
        """Begin anew."""
        self._source.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leave `n` points out."""
        self._source.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self):
        scrambled = f", scramble=True, seed={self.seed}" if self.scramble else ""
        return f"SobolEngine(dimension={self.dimension}{scrambled})"
