"""Untrusted PyTorch files: loading executes no code and does not crash."""

import io
import os
import pickle
import random
import struct
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import cygrad
from cygrad.serialization.torch_reader import LEGACY_VERSION, MAGIC
from tests.tools import try_load

pytestmark = pytest.mark.slow

RAN = []


def _run(*_):
    RAN.append("code of the file")
    return 1


class ByReduce:
    def __reduce__(self):
        return _run, ()


class ByState:
    def __setstate__(self, state):
        _run()

    def __getstate__(self):
        return {"a": 1}


class ByNew:
    def __new__(cls, *_):
        _run()
        return super().__new__(cls)

    def __reduce__(self):
        import copyreg
        return copyreg.__newobj__, (ByNew, 1)


class ByCommand:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Of:
    """Pickled as a call of a global, which need not be there: ``Of("torch._utils", "_rebuild_tensor", 1, 2)``."""

    def __init__(self, module, name, *arguments):
        self.module, self.name, self.arguments = module, name, arguments


class Name(Of):
    """Pickled as the global itself."""

    def __call__(self):
        pass


class Stored:
    """Pickled as a reference to a storage."""

    def __init__(self, *identifier):
        self.identifier = identifier


class Pickler(pickle._Pickler):
    dispatch = pickle._Pickler.dispatch.copy()

    def save_name(self, obj):
        self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[Name] = save_name

    def persistent_id(self, obj):
        return obj.identifier if type(obj) is Stored else None

    def reducer_override(self, obj):
        return (Name(obj.module, obj.name), obj.arguments) if type(obj) is Of else NotImplemented


def pickled(value, protocol=2):
    file = io.BytesIO()
    Pickler(file, protocol).dump(value)
    return file.getvalue()


FLOATS = np.arange(4, dtype="f4").tobytes()


def storage(key="0", count=4, kind="FloatStorage", *view):
    return Stored("storage", Name("torch", kind), key, "cpu", count, *view)


def tensor(memory, offset=0, shape=(4,), strides=(1,), *rest):
    return Of("torch._utils", "_rebuild_tensor_v2", memory, offset, shape, strides, False, OrderedDict(), *rest)


def archive(text, pieces=(FLOATS,), compression=zipfile.ZIP_STORED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("archive/data.pkl", text)
        for number, piece in enumerate(pieces):
            made.writestr(f"archive/data/{number}", piece)
        for name, content in {"version": "3\n", "byteorder": "little", **members}.items():
            made.writestr(f"archive/{name}", content)
    return file.getvalue()


def legacy(text, keys=("0",), pieces=(FLOATS,), counts=(4,), start=(MAGIC, LEGACY_VERSION, {"little_endian": True})):
    raw = b"".join([*map(pickled, start), text, pickled(list(keys))])
    return raw + b"".join(struct.pack("<q", count) + piece for count, piece in zip(counts, pieces, strict=True))


BOTH = pytest.mark.parametrize("form", [archive, legacy])


@BOTH
def test_the_crafted_files_load(form):
    found = try_load(form(pickled({"x": tensor(storage(), 1, (2,), (2,)), "y": [tensor(storage())]})))
    assert found["x"].tolist() == [1, 3]
    assert found["y"][0].tolist() == [0, 1, 2, 3]
    assert try_load(legacy(pickled(tensor(storage("0", 4, "FloatStorage", ("1", 1, 3)), 1, (2,))))).tolist() == [2, 3]


def test_pickles_are_never_run(tmp_path):
    target = tmp_path / "touched"
    texts = [b"cos\nsystem\n(S'touch " + str(target).encode() + b"'\ntR.", b"c__builtin__\neval\n(S'1/0'\ntR.",
             b"(S'touch " + str(target).encode() + b"'\nios\nsystem\n.", b"(cos\nsystem\nX\x04\x00\x00\x00trueo."]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for thing in ByReduce(), ByState(), ByNew(), ByCommand(target), [ByReduce()], {"state_dict": ByCommand(target)}:
            texts.append(pickle.dumps(thing, protocol))
    RAN.clear()                                               # one of them runs it when it is made
    for text in texts:
        for raw in (text, archive(text), legacy(text), archive(pickled(1), version=text), archive(pickled(1), (text,)),
                    archive(pickled(1), **{"code/__init__.py": text, "constants.pkl": text}),
                    legacy(b"", start=()) + text, text + legacy(pickled(1))):
            assert not isinstance(try_load(raw), dict)
    assert RAN == []
    assert not target.exists()


NAMES_OF_CODE = [
    ("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "getattr"),
    ("builtins", "__import__"), ("builtins", "open"), ("torch.hub", "load"), ("torch", "load"), ("torch.nn", "Linear"),
    ("torch._utils", "__builtins__"), ("torch._utils", "_rebuild_tensor.__globals__"), ("torch", "_utils.os.system"),
    ("numpy", "load"), ("numpy.testing._private.utils", "runstring"), ("functools", "partial"),
    ("operator", "attrgetter"),
    ("torch.storage", "_load_from_bytes"), ("torch.jit", "load"), ("runpy", "run_path"), ("types", "FunctionType"),
    ("copyreg", "_reconstructor"), ("builtins", "type"), ("builtins", "object"), ("collections", "defaultdict"),
    ("torch._tensor", "_rebuild_from_type_v2.__globals__"), ("cygrad.serialization.torch_reader", "os"), ("", ""),
    ("\n", "x"),
]


@pytest.mark.parametrize("name", NAMES_OF_CODE)
def test_names_that_are_not_in_the_table(name):
    for protocol in 2, 4:
        for text in pickled(Of(*name, "true"), protocol), pickled(Name(*name), protocol):
            for raw in archive(text), legacy(text):
                assert try_load(raw) is None


def test_results_are_not_called():
    """Only factory functions may be called, not their results, storage types, dtypes or containers."""
    for called in (b"]", b"}", b"N", b"K\x01", b"ctorch\nfloat32\n", b"ctorch\nFloatStorage\n", b"cnumpy\nndarray\n",
                   b"ctorch\nTensor\n", pickled(tensor(storage()))[:-1]):
        for code in b"R", b"\x81":
            assert try_load(archive(b"\x80\x02" + called + b")" + code + b".")) is None


SHAPES = {
    "too large": (0, (5,), (1,)), "too far": (1, (4,), (1,)), "before": (-1, (4,), (1,)), "backwards": (0, (4,), (-1,)),
    "steps": (0, (2,), (4,)), "negative": (0, (-1,), (1,)), "float": (0, (2.5,), (1,)), "truth": (0, (True,), (1,)),
    "text": (0, ("4",), (1,)), "none": (0, None, None), "number": (0, 4, 1), "wrapping": (0, (2**62, 4), (0, 1)),
    "wrapping steps": (0, (2, 2), (2**63, 1)), "huge steps": (0, (2, 2), (2**70, 1)),
    "huge offset": (2**63, (1,), (1,)),
    "more strides": (0, (4,), (1, 1)), "fewer strides": (0, (4,), ()), "huge and empty": (0, (2**62, 2**62, 0),
    (1, 1, 1)),
    "list of tensors": (0, [[4]], [[1]]), "too many dimensions": (0, (1,) * 100_000, (1,) * 100_000),
}


@BOTH
@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_that_do_not_fit(kind, form):
    assert try_load(form(pickled(tensor(storage(), *SHAPES[kind])))) is None


STORAGES = {
    "longer": storage(count=5), "shorter": storage(count=3), "negative": storage(count=-1),
    "huge": storage(count=2**60),
    "beyond": storage(count=2**80), "float": storage(count=4.0), "text": storage(count="4"),
    "larger": storage(kind="DoubleStorage"),
    "path": storage("../data/0"), "absolute": storage("/etc/passwd"), "pickle": storage("../data.pkl"),
    "missing": storage("7"),
    "number": storage(0), "nothing": storage(None), "quantized": storage(kind="QInt8Storage"),
    "tensor": storage(kind="Tensor"),
    "not a storage": Stored("module", Name("torch", "FloatStorage"), "0", "cpu", 4), "empty": Stored(),
    "text alone": Stored("storage"),
    "two kinds": [tensor(storage()), tensor(storage(kind="IntStorage"))],
    "two sizes": [tensor(storage()), tensor(storage(count=2))],
}


@BOTH
@pytest.mark.parametrize("kind", STORAGES)
def test_storages_that_do_not_fit(kind, form):
    found = STORAGES[kind]
    assert try_load(form(pickled(found if isinstance(found, list) else tensor(found)))) is None


MADE = {
    "tensor of a tensor's part": tensor(tensor(tensor(storage()), 0, (2, 2), (2, 1))),
    "tensor of None": tensor(None), "tensor of text": tensor("x"), "tensor without arguments": Of("torch._utils",
    "_rebuild_tensor"),
    "parameter of text": Of("torch._utils", "_rebuild_parameter", "x", True, None),
    "parameter of integers": Of("torch._utils", "_rebuild_parameter", tensor(storage(kind="IntStorage")), True, None),
    "newer type": Of("torch._utils", "_rebuild_tensor_v3", storage(kind="UntypedStorage", count=16), 0, (9,), (1,),
    False, {},
                     Name("torch", "uint16")),
    "newer type of floats": Of("torch._utils", "_rebuild_tensor_v3", storage(), 0, (4,), (1,), False, {},
    Name("torch", "uint16")),
    "from a type": Of("torch._tensor", "_rebuild_from_type_v2", Name("builtins", "set"), Name("torch", "Tensor"),
    ([1],), {}),
    "from a number": Of("torch._tensor", "_rebuild_from_type_v2", 1, Name("torch", "Tensor"), ([1],), {}),
    "to a type": Of("torch._tensor", "_rebuild_from_type_v2", Name("torch._utils", "_rebuild_tensor_v2"),
    Name("builtins", "set"),
                    (storage(), 0, (4,), (1,)), {}),
    "bytes of a number": Of("builtins", "bytearray", 10**12), "bytes by another codec": Of("_codecs", "encode", "x",
    "rot13"),
    "bytes of text beyond": Of("_codecs", "encode", "\u1234", "latin1"),
    "complex of text": Of("builtins", "complex", "1", "2"),
    "set of lists": Of("builtins", "set", [[1]]), "counter of a number": Of("collections", "Counter", 3),
    "ordered of a number": Of("collections", "OrderedDict", 3), "size below zero": Of("torch", "Size", (-1,)),
    "objects": Of("numpy", "dtype", "O8", False, True), "records": Of("numpy", "dtype", "V8", False, True),
    "fields": Of("numpy", "dtype", "f8,f8", False, True), "void": Of("numpy", "dtype", [("a", "O")], False, True),
    "scalar cut off": Of("numpy.core.multiarray", "scalar", Of("numpy", "dtype", "f8", False, True), b"1234"),
    "scalar of a name": Of("numpy.core.multiarray", "scalar", "O", b"12345678"),
}


@pytest.mark.parametrize("kind", MADE)
def test_makers_look_at_their_arguments(kind):
    assert try_load(archive(pickled(MADE[kind]))) is None


def built(maker, state):
    return b"\x80\x02" + pickled(maker)[2:-1] + pickled(state)[2:-1] + b"b."


DTYPE = Of("numpy", "dtype", "f8", False, True)
ARRAY = Of("numpy.core.multiarray", "_reconstruct", Name("numpy", "ndarray"), (0,), b"b")
STATES = {
    "fields": built(DTYPE, (3, "|", None, ("a",), {"a": (1, 0)}, 8, 8, 63)),
    "flags": built(DTYPE, (3, "<", None, None, None, -1, -1, 63)),
    "size": built(DTYPE, (3, "<", None, None, None, 10**6, 1, 0)), "not a tuple": built(DTYPE, [3]),
    "no order": built(DTYPE, (3, "x")),
    "array of objects": built(ARRAY, (1, (1,), Of("numpy", "dtype", "O8", False, True), False, b"12345678")),
    "array cut off": built(ARRAY, (1, (2,), DTYPE, False, b"12345678")),
    "array below zero": built(ARRAY, (1, (-1,), DTYPE, False, b"")),
    "huge array": built(ARRAY, (1, (2**62, 0, 2**62), DTYPE, False, b"")),
    "array of a list": built(ARRAY, (1, (1,), DTYPE, False, [1])),
    "ordered": built(Of("collections", "OrderedDict"), [1]), "ordered by numbers": built(Of("collections",
    "OrderedDict"), {1: 2}),
    "list": built([1], {"a": 1}), "tensor": built(tensor(storage()), {"__class__": 1}), "number": built(1, {"a": 1}),
    "a class": built(Name("torch", "Tensor"), {"backward": 1}), "a maker": built(Name("torch", "Size"),
    {"__code__": 1}),
}


@pytest.mark.parametrize("kind", STATES)
def test_states_of_objects(kind):
    assert try_load(archive(STATES[kind])) is None


def test_attributes_do_not_take_the_place_of_methods():
    found = try_load(archive(pickled(Of(
        "torch._tensor", "_rebuild_from_type_v2", Name("torch._utils", "_rebuild_tensor_v2"), Name("torch", "Tensor"),
        (storage(), 0, (4,), (1,)), {"backward": 1, "__class__": 2, "shape": 3, "own": 4, "a b": 5, 6: 7}))))
    assert found.__dict__ == {"own": 4}


def test_instructions_that_lie_or_do_not_belong_there():
    """Sizes of 2**63 bytes, places of the memo of 2**32, stacks that are empty: nothing is taken that is not there."""
    for text in (b"X\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8, b"B\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 8,
            b"\x96" + b"\xff" * 8,
                 b"\x96" + struct.pack("<Q", 2**40), b"\x8b\xff\xff\xff\x7f", b"T\xff\xff\xff\x7f",
                 b"\x95" + b"\xff" * 8, b"c" + b"x" * 10**6,
                 b"Kr\xff\xff\xff\xff", b"j\xff\xff\xff\xff.", b"h\x01.", b".", b"t.", b"(t", b"((", b"(.", b"(0.",
                 b"0.", b"1.", b"R.", b"a.",
                 b"]a.", b"}s.", b"}K\x01s.", b"}(K\x01u.", b"\x85.", b"K\x01\x87.", b"(q\x00.", b"(2.", b"Nb.", b"b.",
                 b"Q.", b"NQ.", b")Q.", b"\x93.",
                 b"NN\x93.", b"\x82\x01.", b"\x97.", b"I1\n.", b"P1\n.", b"\xff", b"K\x01K\x01.", b"}(]K\x01u.",
                 b"\x8f(]\x90.", b"}]K\x01s.",
                 b"](K\x01\x90.", b"}(K\x01e.", b"](K\x01K\x01u.", b"K\x01(K\x01e.", b"\x80\x06N."):
        for head in b"", b"\x80\x02":
            assert try_load(archive(head + text)) is None
            assert try_load(legacy(head + text)) is None


def test_keys_whose_hash_would_not_end():
    """Tuples of tuples, each twice: 2**200 parts in 1,000 bytes; and 100,000 deep, which no stack holds."""
    doubled = b"\x80\x02}" + b")" + b"2\x86" * 200 + b"K\x01s."
    deep = b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s."
    twins = (b"\x80\x04(" + b")q\x00" + b"(h\x00K\x01\x86h\x00K\x02\x86\x91q\x00" * 60 + b"t"
             b"(h\x00\x90.")
    begun = time.process_time()
    for text in (doubled, deep, doubled.replace(b"}", b"\x8f(").replace(b"K\x01s.", b"\x90."), twins,
                 deep.replace(b"}", b"(").replace(b"K\x01s.", b"\x91."),
                     pickled(Of("builtins", "set", [1]))[:-3] + doubled):
        assert try_load(archive(text)) is None
    assert time.process_time() - begun < 10


def test_deep_values_are_not_followed_down_the_stack():
    found = try_load(archive(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    assert isinstance(found, list)
    try_load(archive(b"\x80\x02" + b")" + b"\x85" * 100_000 + b"."))


def test_compressed_doubled_and_overlapping_members_are_refused():
    text = pickled(tensor(storage()))
    assert try_load(archive(text, compression=zipfile.ZIP_DEFLATED)) is None
    with pytest.warns(UserWarning, match="Duplicate"):
        raw = archive(text, **{"data/0": FLOATS})
    assert try_load(raw) is None
    # A thousand names for the same bytes: each entry of the directory points to the one member.
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickled([tensor(storage(str(n), 250_000), 0, (1,)) for n in range(1000)]))
        made.writestr("archive/data/0", bytes(1_000_000))
        info = made.getinfo("archive/data/0")
        for number in range(1, 1000):
            twin = zipfile.ZipInfo(f"archive/data/{number}")
            for fact in "header_offset", "file_size", "compress_size", "CRC":
                setattr(twin, fact, getattr(info, fact))
            made.filelist.append(twin)
    assert try_load(file.getvalue()) is None


def test_names_and_places_of_the_pickle():
    text = pickled(tensor(storage()))

    def with_names(*names):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            for name in names:
                made.writestr(name, text if name.endswith("pkl") else FLOATS)
        return file.getvalue()
    assert try_load(with_names("any name/data.pkl", "any name/data/0")).tolist() == [0, 1, 2, 3]
    assert try_load(with_names("../data.pkl", "../data/0")).tolist() == [0, 1, 2, 3]     # nothing is written anywhere
    for names in (("data.pkl", "data/0"), ("a/data.pkl", "b/data.pkl", "a/data/0"), ("a/b/data.pkl", "a/b/data/0"),
            ("a/data.pkl",),
                  ("a/data.pkl", "b/data/0"), ("a/data.pkl", "a/data/0", "a/constants.pkl"), ("a/data/0",), ()):
        assert try_load(with_names(*names)) is None
    assert try_load(archive(text, byteorder="middle")) is None


LEGACY = {
    "no key": {"keys": (), "pieces": (), "counts": ()}, "another key": {"keys": ("1",)}, "twice": {"keys": ("0", "0")},
    "a number": {"keys": (0,)}, "more": {"counts": (5,)}, "fewer": {"counts": (3,)}, "huge": {"counts": (2**62,)},
    "below zero": {"counts": (-1,)}, "cut off": {"pieces": (FLOATS[:-1],)},
    "another magic": {"start": (MAGIC + 1, 1001, {"little_endian": True})},
    "another version": {"start": (MAGIC, 1002, {"little_endian": True})}, "no order": {"start": (MAGIC, 1001, {})},
    "a list": {"start": (MAGIC, 1001, [])}, "the other order": {"start": (MAGIC, 1001, {"little_endian": False})},
}


@pytest.mark.parametrize("kind", LEGACY)
def test_damaged_files_of_the_older_form(kind):
    assert try_load(legacy(pickled(tensor(storage())), **LEGACY[kind])) is None


@pytest.mark.parametrize("view", [("1", 3, 2), ("1", -1, 2), ("1", 0, -1), ("1", 2**63, 1), ("1", "0", 4), (1,), 3,
    "abc", []])
def test_views_of_storages_in_the_older_form(view):
    assert try_load(legacy(pickled(tensor(storage("0", 4, "FloatStorage", view), 0, (1,))))) is None


MEMORY = """
import io, resource, sys
import cygrad
raw = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    cygrad.load(io.BytesIO(raw))
except RuntimeError as error:
    assert str(error).startswith("load: "), error
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(raw))
"""


def test_memory_stays_in_proportion_to_the_file(tmp_path):
    """Millions of keys, of names, of empty containers: some dozen times the file, not more."""
    entries = io.BytesIO()
    with zipfile.ZipFile(entries, "w") as made:
        for number in range(20_000):
            made.writestr(f"{number}", b"")
    keys = pickled(dict.fromkeys(range(500000)))
    files = {
        "keys": archive(keys), "keys of the older form": legacy(keys, (), (), ()), "entries": entries.getvalue(),
        "storages": archive(pickled([tensor(storage(str(number), 1), 0, (1,)) for number in range(5_000)]),
        [b"1234"] * 5_000),
        "lists": archive(b"\x80\x02]" + b"(" + b"]" * 1_000_000 + b"e."),
        "halves": archive(pickled(tensor(storage(count=4_000_000, kind="HalfStorage"))), [bytes(8_000_000)]),
    }
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
        done = subprocess.run([sys.executable, "-c", MEMORY, tmp_path / name], capture_output=True, text=True,
            check=True)
        assert float(done.stdout) < 100, name


def written():
    """Files as this library and PyTorch write them."""
    value = {"model": cygrad.nn.Sequential(cygrad.nn.Linear(2, 3), cygrad.nn.BatchNorm1d(3)).state_dict(),
        "list": [1, 2.5, None, "text", 2**70],
             "raw": b"\0\xff", "view": cygrad.ones(3, 4)[:, ::2], "set": {1, 2}, 3: (1, 2, 3, 4),
             "kind": cygrad.float64, "complex": 1j}
    file = io.BytesIO()
    cygrad.save(value, file, format="torch")
    yield file.getvalue()
    text = pickled({"x": tensor(storage(), 1, (2,), (2,)), "y": [tensor(storage()), 1, "text", OrderedDict([(1, 2)])]})
    yield archive(text)
    yield legacy(text)


def test_mutated_bytes():
    """Files with some bytes changed: they load, or say that they are damaged."""
    pick = random.Random(0)
    for raw in written():
        refused = 0
        for _ in range(2000):
            changed = bytearray(raw)
            for _ in range(pick.choice((1, 1, 2, 8))):
                place = pick.randrange(len(changed))
                if pick.random() < 0.2:
                    del changed[place:place + pick.randrange(1, 20)]
                else:
                    changed[place] = pick.randrange(256)
            refused += try_load(bytes(changed)) is None
        for length in range(0, len(raw), 11):
            try_load(raw[:length])
        assert refused > 300


def used(value):
    """Read all tensors of a value, so that a wrong one is found."""
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, cygrad.Tensor):
            part.detach().numpy().tobytes() if part.numel() < 10**6 else None
        elif isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, (list, tuple, set, frozenset)):
            stack.extend(part)


def test_mutated_pickles():
    """The same for the pickle alone, with sums that are right: instructions dropped, doubled, replaced by others."""
    text = pickled({"x": tensor(storage(), 1, (2,), (2,)), "y": [tensor(storage()), 1, "text", OrderedDict([(1, 2)])],
        3: (1, 2, 3, 4),
                    "z": Of("torch._utils", "_rebuild_parameter", tensor(storage()), True, OrderedDict()), "n": ARRAY,
                    "d": DTYPE})
    pick, loaded = random.Random(1), 0
    codes = bytes(range(33, 127)) + bytes(range(0x80, 0x98))
    for _ in range(6000):
        changed = bytearray(text)
        for _ in range(pick.choice((1, 1, 2, 3))):
            place = pick.randrange(len(changed))
            changed[place:place + pick.choice((0, 1, 1, 2))] = bytes(pick.choice(codes) for _ in range(pick.choice((0,
                1, 1, 2))))
        found = try_load(archive(bytes(changed)))
        loaded += found is not None
        used(found)
        used(try_load(legacy(bytes(changed))))
    assert loaded > 200
