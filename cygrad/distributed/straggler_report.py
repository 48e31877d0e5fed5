"""Reports of ranks that have not reached a collective or have exited, for timeout errors."""

__all__ = ["RollCall"]

TAG = 17


class RollCall:
    """
    Messages between collectives, from ranks that wait or have exited.

    A rank that has waited for a quarter of a second notifies the others of its collective, and reads their messages.
    Messages need no answer.

    Parameters
    ----------
    comm : MPI.Comm
        Communicator of all ranks, not used otherwise.
    """

    def __init__(self, comm):
        self.comm = comm
        self.waiting = {}         # rank -> (channel, index of the collective, its name, its description)
        self.left = {}            # rank -> channel -> number of called collectives
        self.last_announced = None  # the collective of the last message
        self.sent = []

    def send(self, message, ranks):
        """Send an object to ranks, without waiting for them."""
        self.sent = [request for request in self.sent if not request.Test()]
        self.sent += [self.comm.isend(message, rank, TAG) for rank in ranks if rank != self.comm.rank]

    def receive(self):
        """Read messages of other ranks."""
        while self.comm.iprobe(tag=TAG):
            status = self.comm_status()
            kind, content = self.comm.recv(tag=TAG, status=status)
            getattr(self, kind)[status.Get_source()] = content

    def comm_status(self):
        """Return the entry of the sender of a message."""
        from mpi4py import MPI
        return MPI.Status()

    def announce_and_check(self, work):
        """Notify the others of the collective that this rank waits in, and raise an error if one of them has exited."""
        if self.last_announced is not work:
            self.last_announced = work
            self.send(("waiting", (work.channel, work.number, work.name, work.describe())), partners(work))
        self.receive()
        gone = [rank for rank in partners(work)
                if rank in self.left and (work.partners is not None
                                          or self.left[rank].get(work.channel, -1) < work.number)]
        if gone:
            from cygrad.distributed.errors import DistBackendError
            raise DistBackendError(f"{work.name}: {ranks_text(gone)} left the job (got a wait of rank "
                                   f"{self.comm.rank} in {work.describe()}). All ranks must call the same collectives "
                                   "before they exit.")

    def missing_ranks_text(self, work):
        """Describe the ranks that have not arrived."""
        self.receive()
        missing, elsewhere = [], []
        for rank in partners(work):
            channel, number, name, text = self.waiting.get(rank, (None, -1, "", ""))
            same = channel == work.channel and work.partners is None
            if rank == self.comm.rank or (same and (number, name) == (work.number, work.name)):
                continue
            missing.append(rank)
            if text and (not same or number >= work.number):
                elsewhere.append(f"Rank {rank} was last seen waiting in {text}.")
        first = f"{ranks_text(missing)} not arrived." if missing else "All ranks have arrived, but MPI hangs."
        return " ".join([first, *elsewhere])

    def leave(self, groups):
        """Notify all ranks that this one exits, and wait until all do."""
        called = {(group.number, later): group.called[later] for group in groups for later in (False, True)}
        self.send(("left", called), range(self.comm.size))
        return self.comm.Ibarrier()


def partners(work):
    """Return the ranks of a collective."""
    return work.group.ranks if work.partners is None else work.partners


def ranks_text(ranks):
    """Return "Rank 1 has" or "Ranks 1, 2 have", for error messages."""
    if len(ranks) == 1:
        return f"Rank {ranks[0]} has"
    return f"Ranks {', '.join(map(str, ranks[:20]))}{' and others' if len(ranks) > 20 else ''} have"
