"""Representations of data sets, samplers, loaders and compiled functions."""

import cygrad
from cygrad.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Subset, TensorDataset


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def test_data_says_how_much_there_is():
    data = TensorDataset(cygrad.ones(4, 2), cygrad.ones(4))
    assert repr(data) == "TensorDataset(4 samples)" and repr(Subset(data, [0, 2])) == "Subset(2 samples)"
    assert repr(Stream()) == "Stream()"                       # of unknown length
    assert repr(BatchSampler(RandomSampler(data), 3, False)) == "BatchSampler(2 indices)"
    assert repr(DataLoader(data, batch_size=2)) == (
        "DataLoader(TensorDataset(4 samples), batch_size=2, num_workers=0, drop_last=False)")


def test_compiled_functions_say_what_they_are_of():
    def doubled(x):
        return x * 2

    compiled = cygrad.compile(doubled)
    assert "compiled" in repr(compiled) and "doubled" in repr(compiled) and "0 variants" in repr(compiled)
