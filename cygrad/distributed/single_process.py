"""Communicator of a single process, without MPI."""

__all__ = ["PROGRESS", "SingleProcess"]


class _Done:
    """Completed request."""

    def Test(self):
        return True


DONE = _Done()


class _Progress:
    """Progress of completed requests."""

    def ask(self, request):
        return True

    def all_reduce(self, tensor, operations, communicator):
        return None


PROGRESS = _Progress()


class SingleProcess:
    """Communicator of one rank; callers raise errors for messages to the own rank."""

    rank, size = 0, 1

    def Dup(self):
        """Do nothing."""
        return self

    def Free(self):
        """Do nothing."""

    def Create_group(self, members):
        """Return the only group."""
        return self

    def Ibarrier(self):
        """Return immediately: there is no other rank."""
        return DONE

    def Ibcast(self, buffer, root):
        """Do nothing: the only rank has the data."""
        return DONE

    def Iallreduce(self, send, receive, op, root=0):
        """Do nothing: the sum of one rank is in place."""
        return DONE

    Ireduce = Iallreduce

    def _copied(self, send, receive, *_):
        if isinstance(send, list):               # buffer with the sizes of its parts
            send, receive = send[0], receive[0]
        if send is not None:                     # MPI.IN_PLACE
            receive.reshape(-1)[...] = send.reshape(-1)
        return DONE

    Iallgather = Iallgatherv = Igather = Igatherv = Iscatter = Iscatterv = Ialltoall = Ialltoallv = _copied
    Ireduce_scatter_block = _copied
