"""Data sets, samplers and collation."""

import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import cygrad
from cygrad.utils import data
from tests.reference import torch


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, index):
        if not 0 <= index < self.n:
            raise IndexError(index)
        return index * index

    def __len__(self):
        return self.n


class Stream(data.IterableDataset):
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def test_tensor_dataset():
    x, y = cygrad.arange(6).reshape(3, 2), cygrad.arange(3)
    made = data.TensorDataset(x, y)
    assert len(made) == 3
    assert [part.tolist() for part in made[1]] == [[2, 3], 1]
    with pytest.raises(ValueError, match="Size mismatch"):
        data.TensorDataset(x, cygrad.arange(4))


def test_concatenation():
    made = Squares(3) + Squares(2)
    assert [made[i] for i in range(5)] == [0, 1, 4, 0, 1]
    assert (made[-1], made[-5], len(made)) == (1, 0, 5)
    assert made.cumulative_sizes == [3, 5]
    with pytest.raises(ValueError, match="out of range"):
        made[-6]
    with pytest.raises(IndexError):
        made[5]
    with pytest.raises(AssertionError, match="at least one dataset"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Stream([1])])


def test_streams():
    assert list(Stream([1, 2]) + Stream([3])) == [1, 2, 3]
    with pytest.raises(AssertionError, match="only supports"):
        list(data.ChainDataset([Squares(2)]))
    with pytest.raises(NotImplementedError):
        iter(data.IterableDataset())
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]


def test_stacks_and_subsets():
    both = data.StackDataset(Squares(3), Squares(3))
    assert both[2] == (4, 4)
    named = data.StackDataset(a=Squares(3), b=data.Subset(Squares(9), [8, 7, 6]))
    assert named[1] == {"a": 1, "b": 49}
    assert named.__getitems__([0, 2]) == [{"a": 0, "b": 64}, {"a": 4, "b": 36}]
    assert both.__getitems__([1]) == [(1, 1)]
    assert len(named) == 3
    for arguments in ((), (Squares(2), Squares(3))):
        with pytest.raises(ValueError, match="StackDataset"):
            data.StackDataset(*arguments)
    with pytest.raises(ValueError, match="StackDataset"):
        data.StackDataset(Squares(2), b=Squares(2))


@pytest.mark.parametrize("lengths", [[3, 7], [0.5, 0.5], [0.3, 0.3, 0.4], [0.35, 0.35, 0.3], [10], [1.0]])
def test_random_split(lengths):
    def split(library):
        parts = library.utils.data.random_split(range(10), lengths, library.Generator().manual_seed(1))
        assert sorted(i for part in parts for i in part.indices) == list(range(10))
        return [len(part) for part in parts]

    assert split(cygrad) == split(torch)
    again = [data.random_split(range(10), lengths, cygrad.Generator().manual_seed(1)) for _ in range(2)]
    assert [part.indices for part in again[0]] == [part.indices for part in again[1]]


def test_splits_that_do_not_fit():
    with pytest.raises(ValueError, match="must equal the length"):
        data.random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="between 0 and 1"):
        data.random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="is empty"):
        data.random_split(range(1), [0.5, 0.5])


# --------------------------------------------------------------------------------------------------------- samplers

def test_samplers():
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(50))) == list(range(50))
    drawn = list(data.RandomSampler(range(3), num_samples=8))
    assert len(drawn) == 8
    assert sorted(drawn[:3]) == sorted(drawn[3:6]) == [0, 1, 2]
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert (len(drawn), set(drawn)) == (100, {0, 1, 2})
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    weighted = data.WeightedRandomSampler([0.0, 1.0, 3.0], 2000)
    counts = np.bincount(list(weighted), minlength=3)
    assert counts[0] == 0
    assert 0.2 < counts[1] / 2000 < 0.3
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    for sampler, n in ((data.RandomSampler(range(3), num_samples=8), 8), (weighted, 2000),
                       (data.SubsetRandomSampler([5, 7]), 2), (data.SequentialSampler(range(4)), 4)):
        assert len(sampler) == n


def test_samplers_follow_their_seed():
    for make in (lambda g: data.RandomSampler(range(20), generator=g), lambda g: data.SubsetRandomSampler(range(20), g),
                 lambda g: data.RandomSampler(range(20), True, generator=g),
                 lambda g: data.WeightedRandomSampler([1.0] * 20, 20, generator=g)):
        first, second, other = (list(make(cygrad.Generator().manual_seed(seed))) for seed in (3, 3, 4))
        assert first == second != other
    cygrad.manual_seed(5)
    first = list(data.RandomSampler(range(20)))
    cygrad.manual_seed(5)
    assert first == list(data.RandomSampler(range(20)))
    assert first != list(data.RandomSampler(range(20)))


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [0, 1, 4, 5, 6])
def test_batch_sampler(n, drop_last):
    ours, theirs = (library.utils.data.BatchSampler(range(n), 2, drop_last) for library in (cygrad, torch))
    assert list(ours) == list(theirs)
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("make", [
    lambda: data.BatchSampler(range(3), 0, False), lambda: data.BatchSampler(range(3), 2, 1),
    lambda: data.RandomSampler(range(3), num_samples=0), lambda: data.WeightedRandomSampler([1.0], 0),
    lambda: data.WeightedRandomSampler([[1.0]], 1), lambda: data.WeightedRandomSampler([1.0], 1, 1)])
def test_wrong_samplers(make):
    with pytest.raises(ValueError, match="must"):
        make()


# -------------------------------------------------------------------------------------------------------- collation

Pair = namedtuple("Pair", "a b")


def plain(value):
    """Kinds and numbers, the same for both libraries."""
    if hasattr(value, "numpy"):
        return ("tensor", str(value.numpy().dtype), value.numpy().tolist())
    if isinstance(value, dict):
        return type(value).__name__, {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return value


BATCHES = {
    "tensors": lambda library: [library.ones(2), library.zeros(2)],
    "integers": lambda library: [1, 2],
    "floats": lambda library: [1.0, 2.0],
    "booleans": lambda library: [True, False],
    "strings": lambda library: ["a", "b"],
    "bytes": lambda library: [b"a", b"b"],
    "arrays": lambda library: [np.ones(2, dtype=np.float32), np.zeros(2, dtype=np.float32)],
    "numpy numbers": lambda library: [np.float32(1), np.float32(2)],
    "tuples": lambda library: [(1, 2.0), (3, 4.0)],
    "lists": lambda library: [[1, "x"], [3, "y"]],
    "dicts": lambda library: [{"a": 1, "b": library.ones(1)}, {"a": 2, "b": library.zeros(1)}],
    "ordered": lambda library: [OrderedDict(a=1), OrderedDict(a=2)],
    "named": lambda library: [Pair(1, 2.0), Pair(3, 4.0)],
    "nested": lambda library: [({"x": [1, 2]}, "s"), ({"x": [3, 4]}, "t")],
}


@pytest.mark.parametrize("kind", BATCHES)
def test_same_batches_as_pytorch(kind):
    ours, theirs = (plain(library.utils.data.default_collate(BATCHES[kind](library))) for library in (cygrad, torch))
    assert ours == theirs
    ours, theirs = ([plain(library.utils.data.default_convert(item)) for item in BATCHES[kind](library)]
                    for library in (cygrad, torch))
    assert ours == theirs


def test_what_cannot_be_collated():
    for batch in [[None], [object()], [np.array(["a"])]]:
        with pytest.raises(TypeError, match="expected tensors, arrays"):
            data.default_collate(batch)
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])


# ------------------------------------------------------------------------------------------------- without threads

@pytest.mark.parametrize("options", [
    {}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"sampler": [4, 2, 0]},
    {"batch_sampler": [[1, 2], [3]]}, {"batch_size": 4, "collate_fn": list}, {"sampler": [1, 3], "batch_size": None}])
def test_loaders_without_workers_are_those_of_pytorch(options):
    results = []
    for library in (cygrad, torch):
        loader = library.utils.data.DataLoader(Squares(7), **options)
        results.append((len(loader), [plain(batch) for batch in loader], [plain(batch) for batch in loader]))
    assert results[0] == results[1]


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams_without_workers_are_those_of_pytorch(options):
    results = []
    for library in (cygrad, torch):
        class Numbers(library.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(7))

            def __len__(self):
                return 7
        loader = library.utils.data.DataLoader(Numbers(), **options)
        results.append((len(loader), [plain(batch) for batch in loader]))
    assert results[0] == results[1]


def test_a_stream_that_is_longer_than_it_said():
    class Liar(Stream):
        def __len__(self):
            return 2
    with pytest.warns(UserWarning, match="reported to be 2"):
        assert len(list(data.DataLoader(Liar(range(3))))) == 3


def test_nobody_asks_a_stream_for_its_length_unless_the_user_does():
    chain = data.ChainDataset([Stream(range(2)), Stream(range(3))])
    assert [int(n) for n in data.DataLoader(chain)] == [0, 1, 0, 1, 2]
    with pytest.raises(TypeError):
        len(data.DataLoader(chain))


@pytest.mark.parametrize(("options", "text"), [
    ({"sampler": [1], "shuffle": True}, "with shuffle"), ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler"),
    ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
    ({"num_workers": -1}, "must not be negative"),
    ({"timeout": -1}, "timeout"), ({"prefetch_factor": 2}, "prefetch_factor"), ({"batch_size": 0}, "batch_size"),
    ({"prefetch_factor": 0, "num_workers": 1}, "positive"), ({"persistent_workers": True}, "persistent_workers")])
def test_wrong_options(options, text):
    with pytest.raises(ValueError, match=text):
        data.DataLoader(Squares(3), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_streams_have_no_order(options):
    with pytest.raises(ValueError, match="IterableDataset"):
        data.DataLoader(Stream([1]), **options)


def test_same_names_as_pytorch():
    import inspect
    for name in ("DataLoader", "RandomSampler", "WeightedRandomSampler", "BatchSampler", "Subset", "ConcatDataset",
                 "SubsetRandomSampler", "random_split", "default_collate"):
        ours, theirs = (inspect.signature(getattr(library.utils.data, name)).parameters for library in (cygrad, torch))
        assert list(ours) == list(theirs)
        if name != "random_split":
            assert [p.default for p in ours.values()] == [p.default for p in theirs.values()]


def test_nothing_is_warned_of_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(data.DataLoader(Squares(5), batch_size=2, shuffle=True, pin_memory=True))) == 3


@pytest.mark.parametrize("size", [6, 7])
def test_a_shared_generator_goes_on_where_that_of_pytorch_does(size):
    def numbers(lib, **options):
        generator = lib.Generator(**options)
        generator.manual_seed(3)
        sampler = lib.utils.data.RandomSampler(range(6), num_samples=size, generator=generator)
        return [list(sampler), list(sampler), lib.randperm(9, generator=generator).tolist()]

    assert numbers(cygrad, algorithm="mt19937") == numbers(torch)


def test_the_options_of_a_loader_are_fixed():
    loader = data.DataLoader(list(range(4)), batch_size=2)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 3)
    loader.timeout = 1
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_loaders_of_a_kind_in_annotations():
    assert data.DataLoader[int] is data.DataLoader


def test_weighted_sampler_draws_when_it_is_read():
    sampler = data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7], 10)
    iterator = iter(sampler)
    cygrad.manual_seed(3)
    first = list(iterator)
    cygrad.manual_seed(3)
    assert list(sampler) == first


class Failing(data.Dataset):
    """Indices; multiples of three cannot be loaded."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        if index % 3 == 0:
            raise KeyError(index)
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_epoch_goes_on_after_an_error_of_the_dataset(workers):
    batches, found, errors = iter(data.DataLoader(Failing(), num_workers=workers)), [], 0
    while True:
        try:
            found.append(next(batches).item())
        except KeyError:
            errors += 1
        except StopIteration:
            break
    assert found == [1, 2, 4, 5] and errors == 3
    with pytest.raises(StopIteration):
        next(batches)


def test_streams_stay_exhausted_without_workers():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    batches = iter(data.DataLoader(Stream(), batch_size=2))
    assert [batch.tolist() for batch in batches] == [[0, 1], [2]] and list(batches) == []


def test_strings_of_numpy_are_collated_as_strings():
    names = np.array(["a", "b"])
    assert list(data.default_collate(list(names))) == ["a", "b"]
    assert data.default_collate([(name, 1) for name in names])[0] == ("a", "b")
    with pytest.raises(TypeError, match="array"):
        data.default_collate([names, names])


@pytest.mark.parametrize(("options", "error"), [
    ({"multiprocessing_context": "fork"}, ValueError),
    ({"num_workers": 1, "multiprocessing_context": "bad"}, ValueError),
    ({"num_workers": 1, "multiprocessing_context": object()}, TypeError)])
def test_wrong_contexts_of_processes_are_refused(options, error):
    with pytest.raises(error, match="DataLoader: multiprocessing_context"):
        data.DataLoader(Failing(), **options)
