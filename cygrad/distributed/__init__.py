"""
Distributed training of several processes, on one machine or many, through MPI.

``mpiexec -n 4 python train.py`` starts four processes. The interface is that of ``torch.distributed``.
"""

from cygrad._core import late_attributes as _late_attributes
from cygrad.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from cygrad.distributed.errors import DistBackendError, DistError
from cygrad.distributed.fixed_tree import tree_all_reduce
from cygrad.distributed.future import Future
from cygrad.distributed.objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from cygrad.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from cygrad.distributed.reduce_op import ReduceOp
from cygrad.distributed.work import Work
from cygrad.distributed.world import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    is_mpi_available,
    new_group,
)

__getattr__, __dir__ = _late_attributes(__name__, {
    name: name for name in ("algorithms", "checkpoint", "nn", "optim")})
