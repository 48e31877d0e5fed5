"""Datasets, samplers and DataLoader."""

from cygrad._core import late_attributes as _late_attributes
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

__getattr__, __dir__ = _late_attributes(__name__, {"DistributedSampler": "distributed"})
