"""Functions of a shared library that its users cannot reach, filled with one byte, which compresses to nothing.

Four tenths of OpenBLAS are LAPACK routines and their C interface that the package never calls. The file keeps its
size and addresses, so nothing is linked again.
"""

import struct

import numpy as np

X86_64, FILL = 62, b"\xcc"      # the fill is a breakpoint, which stops at once
SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<i8"),
                   ("size", "<i8")])
RELOCATION = np.dtype([("offset", "<i8"), ("info", "<i8"), ("addend", "<i8")])
FUNCTIONS = (0, 2, 10)          # STT_NOTYPE (of assembler files), STT_FUNC and STT_GNU_IFUNC
PLT_ENTRY = 16


class Library:
    """The tables of a 64-bit ELF file."""

    def __init__(self, data: bytes):
        self.data = data
        self.machine, = struct.unpack_from("<H", data, 0x12)
        start, = struct.unpack_from("<Q", data, 0x28)
        entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", data, start + i * entry) for i in range(count)]
        self.sections = {self.text(headers[names][4] + header[0]): header[3:] for header in headers}

    def text(self, offset: int) -> str:
        return self.data[offset:self.data.index(0, offset)].decode()

    def table(self, section: str, dtype: np.dtype) -> np.ndarray:
        _, offset, size = self.sections.get(section, (0, 0, 0))
        return np.frombuffer(self.data, dtype, size // dtype.itemsize, offset)

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
