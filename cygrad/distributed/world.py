"""The process groups of a job."""

import importlib.util
import os
import sys
import warnings

from cygrad import get_num_threads, set_num_threads
from cygrad._system import usable_cores
from cygrad.distributed import faults, library, rendezvous, single_process
from cygrad.distributed.debug import compared, debugging, same_everywhere
from cygrad.distributed.errors import DistError
from cygrad.distributed.future import stage
from cygrad.distributed.single_process import SingleProcess
from cygrad.distributed.straggler_report import RollCall
from cygrad.distributed.work import Work, failing, finish_all, seconds_of

__all__ = [
    "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "is_available",
    "is_initialized", "is_mpi_available", "new_group",
]

DEFAULT_TIMEOUT = 30 * 60
BACKENDS = {"mpi", "gloo", "undefined"}
LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")  # environment variables of launchers with the number of ranks


class ProcessGroup:
    """
    Process group, created by `init_process_group` or `new_group`.

    Parameters
    ----------
    comm : MPI.Comm or SingleProcess
    ranks : tuple of int
        Ranks of the members in the world.
    number : int
        Index of the group, the same on all members.
    timeout : float
        Timeout in seconds.
    roll : RollCall or None
    crowded : bool
        Whether this machine has more ranks than cores.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.group.WORLD.rank(), distributed.group.WORLD.size()
    (0, 1)
    >>> distributed.destroy_process_group()
    """

    def __init__(self, comm, ranks, number, timeout, roll, crowded):
        self.ranks, self.number, self.timeout, self.roll, self.crowded = ranks, number, timeout, roll, crowded
        self.comms = [comm, comm.Dup()]            # for first steps, and for continuations
        self.called = [0, 0]                       # number of collectives on each communicator
        self.queue = {}                            # continuations in order
        self.own_rank, self.own_global_rank = comm.rank, ranks[comm.rank]
        self.name = "the default group" if number == 0 else f"group {number} of ranks {list(ranks)}"
        self.comparisons = comm.Dup() if len(ranks) > 1 else None
        self.debug = debugging()
        self.interrupted = []                      # works that possibly have not started after their comparison
        self.mpi = None if isinstance(comm, SingleProcess) else importlib.import_module("mpi4py.MPI")
        self.in_place = self.mpi and self.mpi.IN_PLACE
        self.progress = library.progress_for(crowded) if self.mpi else single_process.PROGRESS
        self.handles = [self.mpi and library.handle(comm) for comm in self.comms]
        self.comparison_handle = self.comparisons and library.handle(self.comparisons)

    @property
    def comm(self):
        """The communicator for the current call."""
        return self.comms[stage.later]

    @property
    def handle(self):
        """MPI handle of that communicator."""
        return self.handles[stage.later]

    def rank(self):
        """Return the rank of this process in the group."""
        return self.own_rank

    def size(self):
        """Return the number of ranks."""
        return len(self.ranks)

    def rank_of(self, operation, global_rank, group_rank=None):
        """Return the rank in the group for a rank in the world, or if None, in the group."""
        given = global_rank if group_rank is None else group_rank
        known = self.ranks if group_rank is None else range(len(self.ranks))
        if isinstance(given, bool) or not isinstance(given, int) or given not in known:
            raise ValueError(f"{operation}: unknown rank in {self.name} (got {given!r}, expected one of "
                             f"{list(known)}).")
        return self.ranks.index(given) if group_rank is None else given

    def run(self, name, steps, async_op=False, detail=None, facts=(), several=False):
        """
        Run a collective.

        Parameters
        ----------
        name : str
            Of the operation.
        steps : generator
            See `Work`.
        async_op : bool
            Whether to return a handle instead of waiting.
        detail : str or callable, optional
            What it is about, in messages.
        facts : tuple
            Values that must be the same on all ranks; for tensors their shape and dtype.
        several : bool
            Whether there may be several steps.

        Returns
        -------
        Work or None
        """
        self.check_open()
        self.called[stage.later] += 1
        comparing = False
        if self.comparisons is not None and not stage.later:
            if self.debug:
                same_everywhere(self, name, facts)
            else:
                while self.interrupted:
                    self._finish_interrupted()
                if facts and several and not async_op:       # its later steps use a separate communicator
                    Work(self, name, compared(self, name, facts, iter(()), True), None, detail).wait()
                elif facts:
                    comparing = not async_op
                    steps = compared(self, name, facts, steps, comparing)
        request = None
        if not (async_op or several):          # most complete soon, without creating a handle
            try:
                request = next(steps)
                while self.progress.ask(request) and request.Test():
                    if request is steps:       # a `Reduction`, which has no continuation
                        return None
                    request = next(steps)
            except StopIteration:
                return None
            except Exception as error:
                steps, request = failing(error), None
            except BaseException:  # an interrupt: MPI can still write to the memory, which the handle keeps alive
                work = Work(self, name, steps, None, detail, several, request)
                self.interrupted += [work] * comparing
                raise
        work = Work(self, name, steps, None, detail, several, request)
        if async_op:
            return work
        try:
            work.wait()
        except BaseException as error:
            if comparing and not work._finished and not isinstance(error, DistError):
                self.interrupted.append(work)
            raise
        return None

    def _finish_interrupted(self):
        """Wait for a work that was interrupted; its error is raised once."""
        work = self.interrupted[0]
        try:
            work.wait()
        finally:
            if work._finished or isinstance(work.exception(), Exception):
                self.interrupted.remove(work)

    def check_open(self):
        """Raise an error if the group has been destroyed."""
        if not self.comms:
            raise ValueError("The process group has been destroyed. Create a new one with new_group.")

    def __repr__(self):
        return f"<ProcessGroup: rank {self.own_rank} of {len(self.ranks)}>"


class _World:
    """The default group, and the state of the process."""

    group = None
    groups = ()                  # all open groups, the default group first
    roll = None
    made = 0                     # number of groups created
    crowded = False
    backend = "mpi"              # as requested


class _GroupNames(type):
    """Properties of the class `group`."""

    @property
    def WORLD(cls):
        """The default group, None before `init_process_group`."""
        return _World.group


class group(metaclass=_GroupNames):
    """The default group, as ``group.WORLD``.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.group.WORLD.size()
    1
    >>> distributed.destroy_process_group()
    """


class GroupMember(metaclass=_GroupNames):
    """Constants for special groups.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.GroupMember.WORLD is None
    True
    """

    NON_GROUP_MEMBER = object()


def is_available():
    """Return whether distributed jobs are supported, which is always True.

    Examples
    --------
    >>> cygrad.distributed.is_available()
    True
    """
    return True


def is_mpi_available():
    """Return whether mpi4py is installed.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.is_mpi_available() in (True, False)
    True
    """
    return importlib.util.find_spec("mpi4py") is not None


def is_initialized():
    """Return whether `init_process_group` has been called.

    Examples
    --------
    >>> cygrad.distributed.is_initialized()
    False
    """
    return _World.group is not None


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None,
                       group_name="", pg_options=None, device_id=None):
    """
    Initialize this process as a rank of a job that was started by ``mpiexec``.

    ``mpiexec -n 4 python train.py`` starts four ranks. Without mpi4py or ``mpiexec`` there is a world of one rank, so
    that the same program runs in a single process. After the call, an uncaught exception ends all ranks, and the cores
    of this machine are divided among its ranks, unless the number of threads was set by ``OMP_NUM_THREADS`` or
    `set_num_threads`.

    Parameters
    ----------
    backend : {"mpi", "gloo"}, optional
        Both names use MPI.
    init_method : str, optional
        Address for the rendezvous of ranks that are not started by ``mpiexec``: ``tcp://host:port``, ``file:///path``,
        or ``env://`` (default) for ``MASTER_ADDR`` and ``MASTER_PORT`` in the environment. Requires MPICH.
    store, group_name, pg_options, device_id : optional
        Accepted and ignored.
    timeout : timedelta or float, default 30 minutes
        Time that a rank waits for others, in seconds.
    world_size, rank : int, optional
        By default ``WORLD_SIZE`` and ``RANK`` in the environment. If ranks are started by ``mpiexec``, they must equal
        those of MPI.

    Raises
    ------
    ValueError
        If the backend is unknown, or `world_size` or `rank` differ from those of MPI.
    RuntimeError
        If there is already a default group, or ``mpiexec`` and mpi4py use different MPI libraries.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group("mpi")
    >>> distributed.get_rank(), distributed.get_world_size()
    (0, 1)
    >>> distributed.destroy_process_group()
    """
    if _World.group is not None:
        raise RuntimeError("init_process_group: a default group already exists (got a second call). Call "
                           "destroy_process_group first.")
    names = {part.split(":")[-1] for part in str(backend or "mpi").lower().split(",")}
    if not names & BACKENDS:
        raise ValueError(f"init_process_group: unknown backend (got {backend!r}, expected 'mpi' or 'gloo'). Both use "
                         "MPI.")
    seconds = seconds_of(timeout, DEFAULT_TIMEOUT)
    comm = _world_communicator(init_method, world_size, rank, seconds)
    for name, given, found in (("world_size", world_size, comm.size), ("rank", rank, comm.rank)):
        if given not in (-1, None, found):
            raise ValueError(f"init_process_group: {name} differs from that of MPI (got {given}, expected {found}). "
                             "Omit it; mpiexec -n sets the number of ranks.")
    if comm.size > 1 and _World.roll is None:
        _World.crowded = _share_cores(comm)
        _World.roll = RollCall(comm.Dup())
        faults.install(comm, _World)
    _World.made, _World.backend = 1, "gloo" if "gloo" in names else "mpi"
    _World.group = ProcessGroup(comm.Dup(), tuple(range(comm.size)), 0, seconds, _World.roll, _World.crowded)
    _World.groups = [_World.group]


def _world_communicator(init_method, world_size, rank, seconds):
    """Return the MPI communicator of all ranks, or that of a single process."""
    launched = max((int(os.environ[name]) for name in LAUNCHERS if os.environ.get(name, "").isdigit()), default=0)
    meeting = None if launched or not is_mpi_available() else rendezvous.wanted(init_method, world_size, rank)
    if meeting is not None and "mpi4py.MPI" not in sys.modules:
        rendezvous.join(*meeting, seconds)
    try:
        from mpi4py import MPI
    except ImportError as error:
        if launched > 1:
            raise RuntimeError(f"init_process_group: mpi4py is required for {launched} ranks (got {error}). Install "
                               "it: pip install 'cygrad[mpi]'.") from error
        return SingleProcess()
    if launched > 1 and MPI.COMM_WORLD.size == 1:
        library = MPI.Get_library_version().split(",")[0].split("\n")[0].strip()
        raise RuntimeError(f"init_process_group: mpiexec has started {launched} ranks, but MPI sees only this one "
                           f"(got the library {library}). Use the mpiexec that belongs to it.")
    if MPI.COMM_WORLD.size > 1 and MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        warnings.warn("init_process_group: MPI was initialized for one thread only; call collectives in the main "
                      "thread.",
                      stacklevel=3)
    return MPI.COMM_WORLD


def _share_cores(comm):
    """Divide cores among the ranks of this machine; return whether there are more ranks than cores."""
    from mpi4py import MPI
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    own = usable_cores()
    masks = node.allgather(sorted(own))
    node.Free()
    share = sum(1 / sum(core in mask for mask in masks) for core in own)
    if "OMP_NUM_THREADS" not in os.environ and get_num_threads() == len(own):
        set_num_threads(max(1, int(share + 1e-6)))
    return len(masks) > len(set().union(*masks))


def member(group):
    """Return the open group; None if this process is not in it."""
    if group is None:
        group = _World.group
        if group is None:
            raise ValueError("There is no default process group yet. Call init_process_group first.")
    elif group is GroupMember.NON_GROUP_MEMBER:
        return None
    elif not isinstance(group, ProcessGroup):
        raise TypeError(f"group: expected a ProcessGroup (got {type(group).__name__}). Create one with new_group.")
    group.check_open()
    return group


def inside(operation, group):
    """Return the group; raise an error if this process is not in it."""
    found = member(group)
    if found is None:
        raise ValueError(f"{operation}: this process is not in the group (got GroupMember.NON_GROUP_MEMBER). Call it "
                         "on members only.")
    return found


def own_group(operation, group):
    """Return the group; None, with a warning, if this process is not in it."""
    found = member(group)
    if found is None:
        warnings.warn(f"Running {operation} on global rank {_World.group.own_rank} which does not belong to the given "
                      "group.", stacklevel=3)
    return found


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False,
              group_desc=None, device_id=None):
    """
    Create a group of some of the ranks. All ranks of the job must call it, in the same order.

    Parameters
    ----------
    ranks : list of int, optional
        All ranks if None.
    timeout : timedelta or float, optional
        Timeout of the default group if None.
    backend, pg_options, use_local_synchronization, group_desc, device_id : optional
        Accepted and ignored.

    Returns
    -------
    ProcessGroup or GroupMember.NON_GROUP_MEMBER

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.new_group([0]).size()
    1
    >>> distributed.destroy_process_group()
    """
    world = member(None)
    ranks = list(range(world.size())) if ranks is None else ranks
    if not isinstance(ranks, (list, tuple, range, set)) or not all(type(rank) is int for rank in ranks):
        raise TypeError(f"new_group: ranks must be a list of int (got {ranks!r}).")
    ranks = sorted(ranks)
    if not ranks or len(set(ranks)) < len(ranks) or not set(ranks) <= set(world.ranks):
        raise ValueError(f"new_group: ranks must be distinct ranks of the world (got {ranks}, expected some of 0 to "
                         f"{world.size() - 1}).")
    seconds = seconds_of(timeout, world.timeout)
    number = _World.made
    _World.made += 1
    if world.own_rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    if len(ranks) == world.size():
        comm = world.comm.Dup()
    else:
        comm = world.comm.Create_group(world.comm.Get_group().Incl(ranks), number)
    made = ProcessGroup(comm, tuple(ranks), number, seconds, _World.roll, _World.crowded)
    _World.groups.append(made)
    return made


def destroy_process_group(group=None):
    """
    Destroy a group, or all if None, after completing pending work.

    Parameters
    ----------
    group : ProcessGroup, optional

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.destroy_process_group()
    >>> distributed.is_initialized()
    False
    """
    found = member(group)
    if found is None:
        return
    finish_all(found.timeout)
    gone = list(_World.groups) if found is _World.group else [found]
    for one in gone:
        for comm in (*one.comms, one.comparisons):
            if comm is not None:
                comm.Free()
        one.comms, one.comparisons = (), None
    _World.groups = [one for one in _World.groups if one not in gone]
    if found is _World.group:
        _World.group = None


def get_rank(group=None):
    """Return the rank of this process in a group, the default group if None; -1 if it is not in it.

    Examples
    --------
    >>> cygrad.distributed.init_process_group("mpi")
    >>> cygrad.distributed.get_rank(), cygrad.distributed.get_world_size()
    (0, 1)
    >>> cygrad.distributed.destroy_process_group()
    """
    found = member(group)
    return -1 if found is None else found.own_rank


def get_world_size(group=None):
    """Return the number of ranks of a group, the default group if None; -1 if this process is not in it.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_world_size()
    1
    >>> distributed.destroy_process_group()
    """
    found = member(group)
    return -1 if found is None else found.size()


def get_backend(group=None):
    """Return the name of the backend passed to `init_process_group`: "mpi" or "gloo".

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_backend()
    'mpi'
    >>> distributed.destroy_process_group()
    """
    inside("get_backend", group)
    return _World.backend


def get_process_group_ranks(group=None):
    """Return the ranks of the members of a group in the world.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_process_group_ranks()
    [0]
    >>> distributed.destroy_process_group()
    """
    return list(inside("get_process_group_ranks", group).ranks)


def get_group_rank(group, global_rank):
    """Return the rank in a group of a rank in the world.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_group_rank(distributed.group.WORLD, 0)
    0
    >>> distributed.destroy_process_group()
    """
    return inside("get_group_rank", group).rank_of("get_group_rank", global_rank)


def get_global_rank(group, group_rank):
    """Return the rank in the world of a rank in a group.

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_global_rank(distributed.group.WORLD, 0)
    0
    >>> distributed.destroy_process_group()
    """
    found = inside("get_global_rank", group)
    return found.ranks[found.rank_of("get_global_rank", None, group_rank)]
