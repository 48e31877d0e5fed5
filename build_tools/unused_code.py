"""Functions of a shared library that its users cannot reach, filled with one byte and cut out of the file.

Four tenths of OpenBLAS are LAPACK routines and their C interface that the package never calls. What stays keeps its
address, so nothing is linked again.
"""

import struct

import numpy as np

X86_64, FILL = 62, b"\xcc"      # the fill is a breakpoint, which stops at once
SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<i8"),
                   ("size", "<i8")])
RELOCATION = np.dtype([("offset", "<i8"), ("info", "<i8"), ("addend", "<i8")])
FUNCTIONS = (0, 2, 10)          # STT_NOTYPE (of assembler files), STT_FUNC and STT_GNU_IFUNC
PLT_ENTRY = 16
SEGMENT = np.dtype([("type", "<u4"), ("flags", "<u4"), ("offset", "<i8"), ("address", "<i8"), ("physical", "<i8"),
                    ("size", "<i8"), ("memory", "<i8"), ("align", "<i8")])
SECTION = np.dtype([("name", "<u4"), ("type", "<u4"), ("flags", "<i8"), ("address", "<i8"), ("offset", "<i8"),
                    ("size", "<i8"), ("link", "<u4"), ("info", "<u4"), ("align", "<i8"), ("entry", "<i8")])
PLACES = "offset", "address", "physical"
ELF_HEADER, PT_LOAD, PF_X = 64, 1, 1
TABLES = (4, 5, 6, 7, 23, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE)       # dynamic tags of tables of sections
PAGE, HOLE = 4096, 1 << 18      # a run of filled bytes of this length is worth a segment, which takes 4 us to load


class Library:
    """The tables of a 64-bit ELF file."""

    def __init__(self, data: bytes):
        self.data = data
        self.machine, = struct.unpack_from("<H", data, 0x12)
        segments, sections = struct.unpack_from("<QQ", data, 0x20)
        _, segment_count, _, count, names = struct.unpack_from("<5H", data, 0x36)
        self.segments = np.frombuffer(data, SEGMENT, segment_count, segments)
        self.headers = np.frombuffer(data, SECTION, count, sections)
        self.sections = {self.text(int(self.headers["offset"][names]) + header[0]): header[3:6]
                         for header in self.headers.tolist()}

    def text(self, offset: int) -> str:
        return self.data[offset:self.data.index(0, offset)].decode()

    def table(self, section: str, dtype: np.dtype) -> np.ndarray:
        _, offset, size = self.sections.get(section, (0, 0, 0))
        return np.frombuffer(self.data, dtype, size // dtype.itemsize, offset)

    def code(self, address: int, nbytes: int) -> bytes:
        """Return bytes at an address, as many as the file has there."""
        segments = self.segments[self.segments["type"] == PT_LOAD]
        for start, offset, size in segments[["address", "offset", "size"]].tolist():
            if start <= address < start + size:
                return self.data[offset + address - start:offset + min(address - start + nbytes, size)]
        return b""

    def names(self, symbols: np.ndarray, strings: str) -> list[str]:
        return [self.text(self.sections[strings][1] + int(name)) for name in symbols["name"]]

    def imported(self) -> set[str]:
        """Return the names of the dynamic symbols that other libraries define."""
        symbols = self.table(".dynsym", SYMBOL)
        return set(self.names(symbols[symbols["section"] == 0], ".dynstr"))

    def exported(self) -> set[str]:
        """Return the names of the dynamic symbols that this library defines."""
        symbols = self.table(".dynsym", SYMBOL)
        return set(self.names(symbols[symbols["section"] != 0], ".dynstr"))

    def relocated(self, section: str) -> np.ndarray:
        """Return the addresses that the relocations of a section store."""
        entries, symbols = self.table(section, RELOCATION), self.table(".dynsym", SYMBOL)
        return entries["addend"] + symbols["value"][entries["info"] >> 32]


def filled(data: bytes, called: set[str]) -> bytes:
    """
    Return the library with its unused functions filled; unchanged for other processors than x86-64.

    Used are the functions in `called`, those whose address is in data (the kernels of all processors), and what these
    call, jump to or take the address of. Every byte may begin such an instruction, so rather too much is used.
    """
    library = Library(data)
    if library.machine != X86_64 or ".symtab" not in library.sections:
        return data
    begin, offset, size = library.sections[".text"]
    symbols = library.table(".symtab", SYMBOL)
    symbols = symbols[np.isin(symbols["info"] & 15, FUNCTIONS) & (symbols["value"] >= begin)
                      & (symbols["value"] < begin + size)]
    starts = np.unique(np.append(symbols["value"], begin))
    ends = np.append(starts[1:], begin + size)

    def function_at(addresses):
        inside = (addresses >= begin) & (addresses < begin + size)
        return np.where(inside, np.searchsorted(starts, addresses, "right") - 1, -1)

    def references(section):
        """Return the positions and targets of instructions with a relative address."""
        first, at, length = library.sections[section]
        code = np.frombuffer(data, np.uint8, length, at)
        before, last = code[:-5], code[1:-4]
        found = np.flatnonzero(
            (last == 0xE8) | (last == 0xE9)                             # call, jmp
            | ((before == 0x0F) & (last & 0xF0 == 0x80))                # conditional jumps
            | ((before == 0x8D) & (last & 0xC7 == 0x05))) + 2           # lea
        relative = sum(code[found + i].astype(np.int64) << 8 * i for i in range(4))
        return first + found, first + found + 4 + (relative ^ (1 << 31)) - (1 << 31)

    sources, targets = references(".text")
    plt, _, plt_size = library.sections[".plt"]
    entry = (targets - plt) // PLT_ENTRY - 1                            # after the entry of the resolver
    through_plt = (targets > plt) & (targets < plt + plt_size) & ((targets - plt) % PLT_ENTRY == 0)
    direct = np.isin(targets, starts)
    edges = np.stack([function_at(np.append(sources[direct], sources[through_plt])),
                      function_at(np.append(targets[direct],
                                            library.relocated(".rela.plt")[entry[through_plt]]))], 1)
    following: dict[int, list[int]] = {}
    for source, target in np.unique(edges, axis=0).tolist():
        following.setdefault(source, []).append(target)
    # A switch may jump into the cold part of its function by a table.
    parts = {}
    names = library.names(symbols, ".strtab")
    positions = function_at(symbols["value"]).tolist()
    for name, function in zip(names, positions, strict=True):
        if ".cold" in name:
            parts.setdefault(name.partition(".")[0], []).append(function)
    for name, function in zip(names, positions, strict=True):
        following.setdefault(function, []).extend(parts.get(name.partition(".")[0], ()))

    exported = library.table(".dynsym", SYMBOL)
    roots = [exported["value"][np.isin(library.names(exported, ".dynstr"), list(called))],
             library.relocated(".rela.dyn"), references(".init")[1], references(".fini")[1]]
    used, waiting = {-1}, function_at(np.concatenate(roots)).tolist()
    while waiting:
        function = waiting.pop()
        if function not in used:
            used.add(function)
            waiting += following.get(function, ())
    result = bytearray(data)
    for function in set(range(len(starts))) - used:
        first, last = int(starts[function]) - begin + offset, int(ends[function]) - begin + offset
        result[first:last] = FILL * (last - first)
    return bytes(result)


def cut(data: bytes) -> bytes:
    """
    Return a stripped library without long runs of filled pages; a jump to such an address is a segmentation fault.

    The segment of code becomes one segment for each remaining part. The sections after the table of segments, such as
    the hash table of the symbols, move to the beginning of the longest run; strip and others expect the table there.
    """
    library = Library(data)
    segments, sections = library.segments.copy(), library.headers.copy()
    (code,) = np.flatnonzero((segments["type"] == PT_LOAD) & (segments["flags"] & PF_X != 0))
    begin, size, address = segments[["offset", "size", "address"]][code].tolist()
    pages = np.frombuffer(data, np.uint8, size // PAGE * PAGE, begin).reshape(-1, PAGE)
    edges = np.diff((pages == FILL[0]).all(1), prepend=False, append=False)
    runs = np.flatnonzero(edges).reshape(-1, 2) * PAGE + begin
    runs = runs[runs[:, 1] - runs[:, 0] >= HOLE]
    first = ELF_HEADER + segments.nbytes
    within = (sections["offset"] >= first) & (sections["offset"] < first + len(runs) * SEGMENT.itemsize)
    last = int((sections["offset"] + sections["size"])[within].max(initial=first))
    if library.machine != X86_64 or not len(runs) or begin != address or last - first > HOLE:
        return data

    longest = np.argmax(runs[:, 1] - runs[:, 0])
    shift = int(runs[longest, 0]) - first
    result = bytearray(data)
    result[first + shift:last + shift] = data[first:last]
    for table in (segments, sections):
        moves = (table["offset"] >= first) & (table["offset"] < last)
        for field in {*PLACES} & {*table.dtype.names}:
            table[field][moves] += shift
    _, offset, size = library.sections[".dynamic"]
    dynamic = np.frombuffer(result, "<i8", size // 8, offset).reshape(-1, 2)
    tag, value = dynamic.T
    value[np.isin(tag, TABLES) & (value >= first) & (value < last)] += shift

    holes = runs.copy()                     # what leaves the file
    holes[longest, 0] += -((first - last) // PAGE) * PAGE

    def parts(entry, ends):
        starts = np.append(entry["offset"], holes[:, 1])
        found = np.repeat(entry, len(starts))
        for field in {*PLACES} & {*entry.dtype.names}:
            found[field] += starts - entry["offset"]
        found["size"] = np.append(ends, entry["offset"] + entry["size"]) - starts
        return found

    loaded = parts(segments[code], holes[:, 0])
    loaded["memory"] = loaded["size"]
    segments = np.concatenate([segments[:code], loaded, segments[code + 1:]])
    (text,) = np.flatnonzero((sections["offset"] <= runs[0, 0])
                             & (sections["offset"] + sections["size"] >= runs[-1, 1]))
    sections[text], *added = parts(sections[text], runs[:, 0])
    sections = np.append(sections, np.array(added))
    removed = np.append(0, np.cumsum(holes[:, 1] - holes[:, 0]))
    for table in (segments, sections):
        table["offset"] -= removed[np.searchsorted(holes[:, 1], table["offset"], "right")]
    result[ELF_HEADER:ELF_HEADER + segments.nbytes] = segments.tobytes()
    end, = struct.unpack_from("<Q", data, 0x28)         # the table of sections comes last
    struct.pack_into("<Q", result, 0x28, end - int(removed[-1]))
    struct.pack_into("<H", result, 0x38, len(segments))
    struct.pack_into("<H", result, 0x3C, len(sections))
    kept = zip([0, *holes[:, 1].tolist()], [*holes[:, 0].tolist(), end], strict=True)
    return b"".join([*(result[start:stop] for start, stop in kept), sections.tobytes()])
