"""Generators of random numbers: the default one, seeds and states."""

import os
import struct
import threading
from contextlib import contextmanager
from typing import Any

import numpy as np

from cygrad._core.arrays.array import device
from cygrad._core.arrays.dtype import uint8
from cygrad._core.creation.creation import from_numpy, numpy_view
from cygrad._core.creation.factories import PCG64Stream
from cygrad._core.graph.tensor import Tensor
from cygrad._core.threads.parallel import renewed_at_fork

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_algorithm", "set_rng_state"]

# Seed of generators without an explicit seed.
FIXED_SEED = 67280421310721
WORD = (1 << 64) - 1
# A state: initial seed, state and increment of the bit generator (128 bits each), half a cached draw.
STATE = struct.Struct("<7Q")
# Bytes of a state; of "mt19937" the seed, 624 words and an index, and a cached normal number.
STATE_SIZES = {"pcg64": STATE.size, "mt19937": 8 + 626 * 4 + 8}
_algorithm = "pcg64"                   # of new generators


class Generator:
    """A source of random numbers with a seed and a state.

    Parameters
    ----------
    device : str, optional
        Only ``"cpu"``.
    algorithm : {"pcg64", "mt19937"}, optional
        "mt19937" gives the numbers that PyTorch gives on a CPU for the same seed; "pcg64" is faster. The default is
        what `set_algorithm` has said, at first "pcg64".

    Notes
    -----
    Several threads may draw from one generator; which of them gets which numbers is then up to chance.

    Examples
    --------
    >>> generator = cygrad.Generator().manual_seed(0)
    >>> cygrad.equal(cygrad.rand(2, generator=generator),
    ...              cygrad.rand(2, generator=cygrad.Generator().manual_seed(0)))
    True
    """

    def __init__(self, device="cpu", *, algorithm=None):
        if str(device) not in ("cpu", "cpu:0"):
            raise RuntimeError(f"Generator: no such device (got {device!r}, expected 'cpu').")
        self.lock = renewed_at_fork(threading.RLock())
        self.algorithm = _checked(algorithm or _algorithm)
        self.manual_seed(FIXED_SEED)

    @property
    def device(self):
        """The CPU."""
        return device("cpu")

    def __repr__(self):
        return f"<cygrad.Generator, initial seed {self._initial_seed}>"

    def __reduce__(self):
        return _restored, (self._packed(), self.algorithm)

    def manual_seed(self, seed):
        """Seed the generator.

        Parameters
        ----------
        seed : int
            In the range of signed or unsigned 64-bit integers; negative ones count from 2**64 - 1 down.

        Returns
        -------
        Generator
            Itself.

        Raises
        ------
        ValueError
            If the seed does not fit into 64 bits.
        RuntimeError
            If it is no integer.
        """
        if isinstance(seed, Tensor) and seed.numel() == 1:
            seed = seed.item()
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed: the seed must be an integer (got {seed!r} of type "
                               f"{type(seed).__name__}).")
        seed = seed.__index__()
        _notify()
        if not -(1 << 63) <= seed <= WORD:
            raise ValueError(f"manual_seed: the seed does not fit into 64 bits (got {seed}).")
        with self.lock:
            self._initial_seed = seed & WORD
            self._numbers = None
        return self

    @property
    def numbers(self):
        """NumPy's generator or a `Mersenne`, created on first use: `numpy.random` is slow to import."""
        _notify()
        with self.lock:
            if self._numbers is None and self.algorithm == "mt19937":
                from cygrad.random.mersenne import Mersenne
                self._numbers = Mersenne(self._initial_seed)
            elif self._numbers is None:
                self._numbers = np.random.Generator(np.random.PCG64(self._initial_seed))
                stream = PCG64Stream(self._numbers.bit_generator)
                self._stream = stream if stream.is_known else None
            return self._numbers

    def fill(self, method, array):
        """Draw into a contiguous array by a method of NumPy's generator, or faster by `PCG64Stream`."""
        with self.lock:
            numbers = self._numbers if noting.draws is None and self._numbers is not None else self.numbers
            if self._stream is not None and (array.dtype.char == "f" or (array.dtype.char, method) == ("d", "random")):
                getattr(self._stream, method)(array)
            else:
                getattr(numbers, method)(out=array, dtype=array.dtype)

    def permutation(self, n):
        """The integers below n in random order."""
        with self.lock:
            numbers = self._numbers if noting.draws is None and self._numbers is not None else self.numbers
            if self._stream is None or n >= 1 << 32:
                return numbers.permutation(n)
            array = np.empty(n, np.int64)
            self._stream.permutation(array)
            return array

    def seed(self):
        """Seed the generator nondeterministically, and return the seed.

        Returns
        -------
        int
        """
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._initial_seed

    def initial_seed(self):
        """Return the initial seed.

        Returns
        -------
        int
        """
        _notify()
        return self._initial_seed

    def _packed(self):
        """Pack the state into bytes."""
        with self.lock:
            if self.algorithm == "mt19937":
                return struct.pack("<Q", self._initial_seed) + self.numbers.packed()
            state = self.numbers.bit_generator.state
            initial = self._initial_seed
        words = state["state"]["state"], state["state"]["inc"]
        return STATE.pack(initial, *(part for word in words for part in (word & WORD, word >> 64)),
                          state["has_uint32"], state["uinteger"])

    def _unpack(self, packed):
        if self.algorithm == "mt19937":
            with self.lock:
                self._initial_seed, = struct.unpack_from("<Q", packed)
                self.numbers.unpack(packed[8:])
            return
        initial, low, high, inc_low, inc_high, waiting, half = STATE.unpack(packed)
        with self.lock:
            self._initial_seed = initial
            self.numbers.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
                "has_uint32": waiting,
                "uinteger": half,
            }

    def get_state(self):
        """Return the state, for `set_state`.

        Returns
        -------
        Tensor
            Bytes: a uint8 tensor of one dimension.
        """
        return from_numpy(np.frombuffer(bytearray(self._packed()), dtype=np.uint8))

    def set_state(self, new_state):
        """Restore a state.

        Parameters
        ----------
        new_state : Tensor
            What `get_state` gave.

        Returns
        -------
        Generator
            This generator.

        Raises
        ------
        TypeError
            If it is no uint8 tensor.
        RuntimeError
            If it is not of the size of a state.
        """
        if not isinstance(new_state, Tensor) or new_state.dtype is not uint8:
            raise TypeError("set_state: a state is a uint8 tensor (got "
                            f"{new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__}).")
        packed = numpy_view(new_state.detach()).tobytes()
        if len(packed) != STATE_SIZES[self.algorithm]:
            raise RuntimeError(f"set_state: not a state of this generator (got {len(packed)} bytes, expected "
                               f"{STATE_SIZES[self.algorithm]}).")
        self._unpack(packed)
        return self

    def clone_state(self):
        """Return an independent generator with the same state.

        Returns
        -------
        Generator
        """
        return _restored(self._packed(), self.algorithm)


def _restored(packed, algorithm="pcg64"):
    generator = Generator(algorithm=algorithm)
    generator._unpack(packed)
    return generator


def _checked(algorithm):
    if algorithm not in STATE_SIZES:
        raise ValueError(f"Generator: unknown algorithm (got {algorithm!r}, expected one of {sorted(STATE_SIZES)}).")
    return algorithm


def set_algorithm(algorithm):
    """
    Set the algorithm of the default generator and of new ones.

    Parameters
    ----------
    algorithm : {"pcg64", "mt19937"}
        See `Generator`. The default generator starts again from its seed.

    Examples
    --------
    >>> cygrad.random.set_algorithm("mt19937")
    >>> _ = cygrad.manual_seed(0)
    >>> cygrad.rand(3)                     # as in PyTorch
    tensor([0.4963, 0.7682, 0.0885])
    >>> cygrad.random.set_algorithm("pcg64")
    """
    global _algorithm
    _algorithm = _checked(algorithm)
    with default_generator.lock:
        default_generator.algorithm = algorithm
        default_generator.manual_seed(default_generator.initial_seed())


class Own(threading.local):
    """The generator that replaces the default one on this thread, or None."""

    generator = None


_own = Own()


class Noting(threading.local):
    """The observer of draws on this thread, or None."""

    draws: Any = None


noting = Noting()


def _notify():
    """Notify the observer that generators are used other than for a draw."""
    if noting.draws is not None:
        noting.draws.used()


default_generator = Generator()
default_generator.seed()


def current():
    """Return the default generator of this thread."""
    return _own.generator or default_generator


def per_entry(memory):
    """Return memory to draw into: under `vmap` for those of each entry, if they differ."""
    generator = current()
    return generator.per_entry(memory) if generator.algorithm == "vmap" else memory


def algorithm_of(generator):
    """Return the algorithm of a generator: under `vmap` of the one it draws from."""
    while generator.algorithm == "vmap":
        generator = generator.outer
    return generator.algorithm


@contextmanager
def own_generator(generator):
    """Replace the default generator on this thread during a block."""
    before = _own.generator
    _own.generator = generator
    try:
        yield
    finally:
        _own.generator = before


def chosen(generator, operation):
    """Return the argument, or the default generator; under `vmap` what draws from it in the mode of the level."""
    default = current()
    if generator is None:
        return default
    if not isinstance(generator, Generator):
        raise TypeError(f"{operation}: generator must be a Generator (got {type(generator).__name__}).")
    return default.over(generator) if default.algorithm == "vmap" else generator


def manual_seed(seed):
    """Seed the default generator.

    Parameters
    ----------
    seed : int

    Returns
    -------
    Generator
        The default one.

    Examples
    --------
    >>> _ = cygrad.manual_seed(0)
    >>> a = cygrad.rand(3)
    >>> _ = cygrad.manual_seed(0)
    >>> cygrad.equal(a, cygrad.rand(3))
    True
    """
    return current().manual_seed(seed)


def seed():
    """Seed the default generator nondeterministically, and return the seed.

    Returns
    -------
    int

    Examples
    --------
    >>> cygrad.seed() == cygrad.initial_seed()
    True
    """
    return current().seed()


def initial_seed():
    """Return the initial seed of the default generator.

    Returns
    -------
    int

    Examples
    --------
    >>> _ = cygrad.manual_seed(7)
    >>> cygrad.initial_seed()
    7
    """
    return current().initial_seed()


def get_rng_state():
    """Return the state of the default generator.

    Returns
    -------
    Tensor
        Bytes: a uint8 tensor of one dimension.

    Examples
    --------
    >>> state = cygrad.get_rng_state()
    >>> a = cygrad.rand(3)
    >>> cygrad.set_rng_state(state)
    >>> cygrad.equal(a, cygrad.rand(3))
    True
    """
    return current().get_state()


def set_rng_state(new_state):
    """Restore a state of the default generator.

    Parameters
    ----------
    new_state : Tensor
        What `get_rng_state` gave.

    Examples
    --------
    >>> cygrad.set_rng_state(cygrad.get_rng_state())
    """
    current().set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True):
    """Restore the state of the default generator after a block.

    Parameters
    ----------
    devices : optional
        Without effect; there is only the CPU.
    enabled : bool, default True
        False: do nothing.

    Examples
    --------
    >>> with cygrad.random.fork_rng():
    ...     a = cygrad.rand(3)
    >>> cygrad.equal(a, cygrad.rand(3))
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
