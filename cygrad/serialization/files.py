"""Files that replace others only when complete, and archives with checked members."""

import contextlib
import io
import os
import stat
import zipfile
from typing import IO

__all__ = ["Archive", "add_member", "read_fully", "replacing"]

CHUNK = 1 << 20


# ------------------------------------------------------------------------------------------------------------- writing

@contextlib.contextmanager
def replacing(target):
    """
    Open a binary file for writing, from a path or a file object.

    The file at a path is replaced at the end, atomically, and after the new content has reached the disk; an error or a
    kill leaves it unchanged. Special files (``/dev/null``, a pipe), and files in directories that are not writable, are
    written directly.
    """
    if hasattr(target, "write"):
        seekable = all(hasattr(target, method) for method in ("seek", "tell", "flush"))
        # Buffered files write all bytes; others may write fewer, and return how many.
        yield (target if seekable and isinstance(target, io.BufferedIOBase)
               else _SeekableStream(target) if seekable else _Stream(target))
        return
    path = os.path.realpath(os.fspath(target))           # replace the target of a link, not the link
    old = os.stat(path) if os.path.exists(path) else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb", buffering=0) as raw:
            yield _Stream(raw)
        return
    suffix = os.urandom(6).hex()
    partial = os.path.join(os.path.dirname(path), (b".%s.part" % suffix.encode() if isinstance(path, bytes)
                                                  else f".{suffix}.part"))
    try:
        try:
            file: IO[bytes] | None = open(partial, "xb")  # noqa: SIM115 (closed below, or with the object)
        except (PermissionError, FileNotFoundError):     # if it cannot be opened either, the error names it
            file = None
        if file is None:
            with open(path, "wb") as file:
                yield file
            return
        with file:
            if old is not None:
                os.chmod(partial, stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        # A signal handler runs after a call, so none runs before this one, even while another exception is handled.
        try:  # noqa: SIM105  (suppress() would be a call before this one)
            os.unlink(partial)
        except OSError:
            pass
        raise


class _Stream:
    """A file object that can only be written sequentially; devices, for example, return meaningless positions."""

    def __init__(self, file):
        self.file = file

    def write(self, content):
        rest = memoryview(content).cast("B")
        size = len(rest)
        while len(rest):
            count = self.file.write(rest)
            if count is None and not isinstance(self.file, io.RawIOBase):
                break                            # a `write` that returns None has written all
            if not count:
                raise BlockingIOError(f"save: the file accepts no more data (wrote {size - len(rest)} of {size} "
                                      "bytes). Use a blocking or buffered file.")
            rest = rest[count:]
        return size

    def flush(self):
        pass


class _SeekableStream(_Stream):
    """A stream with seek and tell."""

    def __init__(self, file):
        super().__init__(file)
        self.seek, self.tell, self.flush = file.seek, file.tell, file.flush  # type: ignore[method-assign]


def add_member(archive, name, chunks, size):
    """Store chunks of bytes, `size` in total, under a name in a zip archive; equal contents make equal files."""
    info = zipfile.ZipInfo(name)
    info.file_size = size                                # decides whether zip64 is needed
    with archive.open(info, "w") as member:
        for chunk in chunks:
            member.write(chunk)


# ------------------------------------------------------------------------------------------------------------- reading

class Archive:
    """
    A zip archive of uncompressed members.

    Compressed, overlapping and duplicate members are refused before anything is read, so no more than the file's length
    is ever read.
    """

    def __init__(self, file):
        self.zip = zipfile.ZipFile(file)
        members = self.zip.infolist()
        self.sizes = {member.filename: member.file_size for member in members}
        if len(self.sizes) != len(members):
            raise ValueError("duplicate name")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise ValueError(f"{member.filename!r} is compressed")
        if sum(self.sizes.values()) > self.zip.fp.seek(0, os.SEEK_END):  # type: ignore[union-attr]
            raise ValueError("its members are longer than the file, or overlap")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.zip.close()

    def __contains__(self, name):
        return name in self.sizes

    def read(self, name):
        """Return all bytes of a member."""
        return self.zip.read(name)

    def open(self, name):
        """Open a member as a file."""
        return self.zip.open(name)


def read_fully(file, buffer):
    """Fill a buffer from a file; raise if there are too few bytes."""
    view = memoryview(buffer).cast("B")
    place = 0
    while place < len(view):
        count = file.readinto(view[place:place + CHUNK])
        if not count:
            raise EOFError(f"it is truncated (got {place} bytes of {len(view)})")
        place += count
