"""
Rendezvous of ranks that are not started by ``mpiexec``, but by `multiprocessing.spawn`, a shell, or a launcher that
sets ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT``.
"""

import os
import socket
import subprocess
import sys
import time
from urllib.parse import urlparse

from cygrad.distributed import rendezvous_server

__all__ = ["join", "wanted"]

PAUSE = 0.02


def wanted(init_method, world_size, rank):
    """
    Return world size, rank and address; None for a single rank.

    Parameters
    ----------
    init_method : str or None
        ``env://``, ``tcp://host:port`` or ``file:///path``.
    world_size, rank : int
        -1 to read the environment.

    Returns
    -------
    tuple or None
        World size, rank, and address: (host, port), or the path of a file.
    """
    size = world_size if world_size not in (-1, None) else int(os.environ.get("WORLD_SIZE", 1))
    rank = rank if rank not in (-1, None) else int(os.environ.get("RANK", 0))
    if size <= 1:
        return None
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: rank must be one of 0 to {size - 1} (got {rank}).")
    place = urlparse(init_method or "env://")
    if place.scheme == "file":
        return size, rank, place.path
    host, port = (place.hostname, place.port) if place.scheme == "tcp" else (
        os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT"))
    if host is None or port is None:
        raise ValueError(f"init_process_group: the address for the rendezvous of {size} ranks is unknown (got "
                         f"init_method={init_method!r}). Set MASTER_ADDR and MASTER_PORT, or start the program with "
                         "mpiexec.")
    return size, rank, (host, int(port))


def join(size, rank, place, seconds):
    """Connect to the other ranks, for the initialization of MPI."""
    deadline = time.monotonic() + seconds
    if rank == 0:
        place = _opened(size, place)
    while True:
        try:
            connection = socket.create_connection(_address(place), timeout=seconds)
            break
        except (OSError, ValueError) as error:        # the first rank has not started yet
            if time.monotonic() > deadline:
                raise TimeoutError(f"init_process_group: rank {rank} of {size} did not find rank 0 within {seconds:g} "
                                   f"seconds (got {error}; place {place}).") from None
            time.sleep(PAUSE)
    connection.settimeout(None)
    os.environ.update(PMI_FD=str(connection.detach()), PMI_RANK=str(rank), PMI_SIZE=str(size))


def _opened(size, place):
    """Start the rendezvous server; return its address."""
    written = not isinstance(place, tuple)
    with socket.create_server(("127.0.0.1", 0) if written else place) as listener:
        subprocess.Popen([sys.executable, "-S", "-E", rendezvous_server.__file__, str(listener.fileno()), str(size)],
                         pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
        host, port = listener.getsockname()[:2]
    if written:
        with open(f"{place}.part", "w") as file:
            file.write(f"{host} {port}")
        os.replace(f"{place}.part", place)
    return host, port


def _address(place):
    """Return host and port, read from a file if the address is a path."""
    if isinstance(place, tuple):
        return place
    with open(place) as file:
        host, port = file.read().split()
    return host, int(port)
