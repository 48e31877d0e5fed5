"""Models on several threads: a batch split among replicas, or weights shared by independent training loops."""

from cygrad.nn.parallel.data_parallel import DataParallel, data_parallel
from cygrad.nn.parallel.hogwild import share_weights
from cygrad.nn.parallel.parallel_apply import parallel_apply
from cygrad.nn.parallel.replicate import replicate
from cygrad.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs


def __getattr__(name):
    if name == "DistributedDataParallel":           # imported together
        from cygrad.nn.parallel.distributed import DistributedDataParallel
        return DistributedDataParallel
    raise AttributeError(f"module 'cygrad.nn.parallel' has no attribute {name!r}")
