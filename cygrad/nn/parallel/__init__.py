"""Data parallelism: replicas on threads, shared weights (Hogwild), and DistributedDataParallel."""

from cygrad._core import late_attributes as _late_attributes
from cygrad.nn.parallel.data_parallel import DataParallel, data_parallel
from cygrad.nn.parallel.hogwild import share_weights
from cygrad.nn.parallel.parallel_apply import parallel_apply
from cygrad.nn.parallel.replicate import replicate
from cygrad.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

__getattr__, __dir__ = _late_attributes(__name__, {"DistributedDataParallel": "distributed"})
