"""Names in the scope of the cases of `tests.fuzz.subjects`."""

import functools
import io
import random
import zipfile

import numpy as np

import cygrad as t
from tests.capsules import LIES, Capsule
from tests.fuzz.hostile import HostileError

# Codes and widths of elements, as DLPack has them.
KINDS = ((0, 8), (0, 64), (1, 8), (1, 16), (2, 16), (2, 32), (2, 64), (4, 16), (5, 64), (6, 8))
CAPSULES = []                       # memory of capsules outlives the tensors that export it


class Traced(t.Tensor):
    """Sees every operation, and does it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Refusing(t.Tensor):
    """Subclass that refuses all operations."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise HostileError("__torch_function__")


class Holder:
    """Offers a capsule, and says that it is on any device."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def lying(seed):
    """A capsule whose shape, strides and facts are drawn at random, inside of the memory that it has."""
    generator = random.Random(seed)
    shape = [generator.choice((0, 1, 2, 3)) for _ in range(generator.choice((0, 1, 1, 2, 3)))]
    strides = None if generator.random() < 0.5 else [generator.choice((-4, -3, -1, 0, 1, 2, 4, 6)) for _ in shape]
    code, bits = generator.choice(KINDS)
    facts = {"shape": shape, "strides": strides, "code": code, "bits": bits, "versioned": generator.random() < 0.7,
             "flags": generator.choice((0, 1, 2))}
    if generator.random() < 0.3:
        facts.update(generator.choice([lie for lie in LIES if facts["versioned"] or "major" not in lie]))
        if len(facts["shape"]) != len(shape):
            facts["strides"] = None
    made = Capsule(**facts)
    CAPSULES.append(made)
    del CAPSULES[:-200]             # long after the case that has used it
    return made.capsule()


@functools.cache
def whole(kind):
    """A file of that kind as it should be."""
    file = io.BytesIO()
    x = t.arange(6.0).reshape(2, 3).requires_grad_()
    state = {"a": x, "b": [x[1:].detach(), t.arange(3), 1.5], "c": t.ones(2, dtype=t.bfloat16), "d": t.nn.Parameter(x)}
    if kind == "safetensors":
        return t.safetensors.save({"a": x.detach(), "b": t.arange(3), "c": t.ones(2, dtype=t.bool)})
    if kind == "legacy":
        from tests.serialization.test_torch_files_safety import legacy, pickled, storage, tensor
        return legacy(pickled({"x": tensor(storage(), 1, (2,), (2,)), "y": [tensor(storage())]}))
    t.save(state, file, format=kind)
    return file.getvalue()


def mutated(kind, seed):
    """A file with some bytes changed, moved or gone; of an archive mostly in one of its members."""
    generator, data = random.Random(seed), bytearray(whole(kind))
    if data[:2] != b"PK" or generator.random() < 0.3:
        return io.BytesIO(changed(data, generator))
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as old, zipfile.ZipFile(made, "w") as new:
        members = old.namelist()
        chosen = generator.choice(members)
        for name in members:
            text = bytearray(old.read(name))
            if name == chosen and generator.random() < 0.1:
                continue
            new.writestr(name, changed(text, generator) if name == chosen else bytes(text))
    return made


def changed(data, generator):
    """Bytes with a few mistakes."""
    for _ in range(generator.choice((1, 1, 2, 4))):
        place = generator.randrange(len(data) + 1)
        kind = generator.randrange(6)
        if kind == 0:
            del data[place:place + generator.choice((1, 2, 8))]
        elif kind == 1:
            data[place:place] = generator.choice((b"\0", b"\xff" * 4, b"(", b"t.", b"\x80\x02", b"9" * 20, b"-"))
        elif kind == 2:
            other = generator.randrange(len(data) + 1)
            data[place:place] = data[other:other + 8]
        elif kind == 3 and generator.random() < 0.3:
            del data[place:]
        elif place < len(data):
            data[place] = generator.choice((generator.randrange(256), data[place] ^ 1 << place % 8, 0, 255))
    return bytes(data)


def twin(x):
    """Return a separate copy of a leaf or result."""
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, t.Tensor) else x


def outcome(function, arguments):
    """Return the result of a call and its gradient, or the class of its exception."""
    t.manual_seed(3)
    arguments = [twin(x) for x in arguments]
    try:
        found = function(*arguments)
        if isinstance(found, t.Tensor) and found.requires_grad:
            leaves = [x for x in arguments if isinstance(x, t.Tensor) and x.requires_grad]
            return [found, *(t.autograd.grad(found.sum(), leaves, allow_unused=True) if leaves else ())]
        return [found]
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        return error


def equal(mine, other):
    """Return whether both are bit-identical."""
    if isinstance(mine, (tuple, list)):
        return len(mine) == len(other) and all(map(equal, mine, other))
    if not isinstance(mine, t.Tensor) or mine.is_meta or mine.is_sparse:
        return type(mine) is type(other)
    if mine.shape != other.shape or mine.dtype is not other.dtype or mine.requires_grad != other.requires_grad:
        return False
    mine, other = (np.asarray(x.detach().float() if x.element_size() == 2 else x.detach()) for x in (mine, other))
    return bool(((mine == other) | ((mine != mine) & (other != other))).all())


def same(function, compiled, *arguments):
    """Compare a function with its compiled form."""
    plain, replayed = outcome(function, arguments), outcome(compiled, arguments)
    if isinstance(plain, Exception) or isinstance(replayed, Exception):
        if isinstance(plain, Exception) != isinstance(replayed, Exception):
            raise AssertionError(f"eager: {plain!r}, compiled: {replayed!r}")
        return
    if not equal(plain, replayed):
        raise AssertionError(f"eager: {plain!r}, compiled: {replayed!r}")


NAMES = {"Traced": Traced, "Refusing": Refusing, "Holder": Holder, "lying": lying, "mutated": mutated, "same": same}
