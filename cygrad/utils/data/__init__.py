"""Datasets, samplers, and data loaders with worker threads."""

from cygrad._core import public_dir as _public_dir
from cygrad.utils.data.collate import default_collate, default_convert
from cygrad.utils.data.dataloader import DataLoader
from cygrad.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from cygrad.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from cygrad.utils.data.workers import get_worker_info


def __getattr__(name):
    if name == "DistributedSampler":           # imported together
        from cygrad.utils.data.distributed import DistributedSampler
        return DistributedSampler
    raise AttributeError(f"module 'cygrad.utils.data' has no attribute {name!r}")

__dir__ = _public_dir(__name__)
