"""
Rendezvous server of ranks that are not started by ``mpiexec``, run as a program by rank 0.

MPICH requests the addresses of other ranks from its launcher, in lines of text (PMI, version 1). This program answers
the requests and stores the published values. It is a separate process, because MPI keeps the GIL while it initializes,
and imports nothing of this library, to start fast.
"""

import socket
import sys
import threading

__all__ = ["Rendezvous", "serve"]

LIMITS = "kvsname_max=256 keylen_max=64 vallen_max=4096"


class Rendezvous:
    """
    Values published by ranks, and the number of ranks that wait.

    Parameters
    ----------
    size : int
        Number of ranks.
    """

    def __init__(self, size):
        self.size, self.published, self.waiting, self.round = size, {}, 0, 0
        self.changed = threading.Condition()

    def answer(self, line):
        """Return the answer to a line of the form ``cmd=put key=name value=text``."""
        head, _, value = line.rstrip("\n").partition(" value=")
        fields = dict(part.split("=", 1) for part in head.split() if "=" in part)
        command = fields.get("cmd")
        if command == "put":
            self.published[fields.get("key")] = value
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            found = self.published.get(fields.get("key"))
            return ("cmd=get_result rc=-1 msg=key_not_found value=unknown" if found is None else
                    f"cmd=get_result rc=0 msg=success value={found}")
        if command == "barrier_in":
            self.wait()
        return {"init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                "get_maxes": f"cmd=maxes {LIMITS} rc=0", "get_appnum": "cmd=appnum appnum=0 rc=0",
                "get_universe_size": f"cmd=universe_size size={self.size} rc=0",
                "get_my_kvsname": "cmd=my_kvsname kvsname=ranks rc=0", "barrier_in": "cmd=barrier_out rc=0",
                "finalize": "cmd=finalize_ack rc=0"}.get(command, f"cmd={command}_response rc=-1")

    def wait(self):
        """Wait until all ranks have arrived."""
        with self.changed:
            self.waiting += 1
            if self.waiting == self.size:
                self.waiting, self.round = 0, self.round + 1
                self.changed.notify_all()
            else:
                now = self.round
                self.changed.wait_for(lambda: self.round != now)

    def talk(self, connection):
        """Answer one rank until it disconnects."""
        with connection, connection.makefile("rw", newline="\n") as lines:
            try:
                for line in lines:
                    lines.write(self.answer(line) + "\n")
                    lines.flush()
            except OSError:                    # it disconnected without a message
                pass


def serve(listener, size):
    """Serve the ranks until all have disconnected."""
    meeting = Rendezvous(size)
    threads = []
    for _ in range(size):
        threads.append(threading.Thread(target=meeting.talk, args=(listener.accept()[0],), daemon=True))
        threads[-1].start()
    listener.close()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
