"""A world of one process without MPI: the methods of a communicator, as copies."""

__all__ = ["PROGRESS", "Alone"]


class _Done:
    """A request that is complete."""

    def Test(self):
        return True


DONE = _Done()


class _Progress:
    """Progress of requests, which are already complete."""

    def ask(self, request):
        return True

    def all_reduce(self, tensor, operations, communicator):
        return None


PROGRESS = _Progress()


class Alone:
    """A communicator of one rank; callers refuse messages to oneself."""

    rank, size = 0, 1

    def Dup(self):
        """No effect."""
        return self

    def Free(self):
        """No effect."""

    def Create_group(self, members):
        """The only group."""
        return self

    def Ibarrier(self):
        """Return immediately: there is no other rank."""
        return DONE

    def Ibcast(self, buffer, root):
        """Every rank has it."""
        return DONE

    def Iallreduce(self, send, receive, op, root=0):
        """In place: the sum of one."""
        return DONE

    Ireduce = Iallreduce

    def _copied(self, send, receive, *_):
        if isinstance(send, list):               # with the sizes of its parts
            send, receive = send[0], receive[0]
        if send is not None:                     # which means "in place"
            receive.reshape(-1)[...] = send.reshape(-1)
        return DONE

    Iallgather = Iallgatherv = Igather = Igatherv = Iscatter = Iscatterv = Ialltoall = Ialltoallv = _copied
    Ireduce_scatter_block = _copied
