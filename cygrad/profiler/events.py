"""Events of a profiler, their averages by name, tables and traces."""

import json
import os
import threading
import time

from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad._core.memory.storage import memory_stats

__all__ = ["Event", "EventAverage", "EventList", "Recorder"]

UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))


def duration(microseconds):
    """Format a time in a suitable unit."""
    for size, unit in UNITS:
        if abs(microseconds) >= size or unit == "us":
            return f"{microseconds / size:.3f}{unit}"


class Event:
    """
    An operation, node or marked range of a program.

    Attributes
    ----------
    name : str
    kind : {"operator", "node", "range"}
    start, end : float
        Microseconds since the start of the profiler.
    cpu_time, self_cpu_time : float
        Microseconds, the second without nested events.
    input_shapes : list
        Of the operands, if recorded.
    cpu_memory_usage : int
        Bytes allocated and not freed, if recorded.
    cpu_parent : Event or None
    cpu_children : list of Event

    Examples
    --------
    >>> from cygrad.profiler import profile
    >>> with profile() as p:
    ...     x = cygrad.ones(2).exp()
    >>> [event.name for event in p.events()]
    ['exp']
    """

    def __init__(self, name, kind, start, parent, shapes):
        self.name, self.kind, self.start, self.end = name, kind, start, start
        self.cpu_parent, self.cpu_children, self.input_shapes = parent, [], shapes
        self.thread, self.cpu_memory_usage, self.count, self.stack = threading.get_ident(), 0, 1, []

    key = property(lambda self: self.name, doc="The name.")
    cpu_time = cpu_time_total = property(lambda self: self.end - self.start, doc="Microseconds.")
    cuda_time = device_time = device_time_total = self_device_time_total = property(lambda self: 0, doc="None.")
    is_async = is_remote = False

    @property
    def self_cpu_time(self):
        """Microseconds without nested events."""
        return self.cpu_time - sum(child.cpu_time for child in self.cpu_children)

    self_cpu_time_total = self_cpu_time

    @property
    def self_cpu_memory_usage(self):
        """Bytes without nested events."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        return f"<Event {self.name} {duration(self.cpu_time)}>"


class EventAverage:
    """
    Average of all events of one name.

    Attributes
    ----------
    key : str
    count : int
    cpu_time_total, self_cpu_time_total, cpu_time : float
        Microseconds of all, without those of events within them, and of one on average.

    Examples
    --------
    >>> from cygrad.profiler import profile
    >>> with profile() as p:
    ...     x = cygrad.ones(2).exp().exp()
    >>> {average.key: average.count for average in p.key_averages()}
    {'exp': 2}
    """

    def __init__(self, event):
        self.key, self.input_shapes, self.stack = event.name, event.input_shapes, event.stack
        self.count = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.is_async = self.is_remote = False

    cpu_time = property(lambda self: self.cpu_time_total / max(self.count, 1), doc="Microseconds on average.")
    cuda_time = cuda_time_total = self_cuda_time_total = device_time = device_time_total = self_device_time_total = (
        property(lambda self: 0, doc="None: there is only the CPU."))

    def add(self, event):
        """Add an event."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        outer = event.cpu_parent
        while outer is not None and outer.name != event.name:
            outer = outer.cpu_parent
        if outer is None:                        # nested in an event of the same name: already counted
            self.cpu_time_total += event.cpu_time_total

    def __repr__(self):
        return (f"<EventAverage key={self.key} self_cpu_time={duration(self.self_cpu_time_total)} "
                f"cpu_time={duration(self.cpu_time)} count={self.count}>")


# column -> its text for an average, and its share of the total
COLUMNS = {
    "Name": lambda row, total: row.key,
    "Self CPU %": lambda row, total: f"{100 * row.self_cpu_time_total / total:.2f}%",
    "Self CPU": lambda row, total: duration(row.self_cpu_time_total),
    "CPU total %": lambda row, total: f"{100 * row.cpu_time_total / total:.2f}%",
    "CPU total": lambda row, total: duration(row.cpu_time_total),
    "CPU time avg": lambda row, total: duration(row.cpu_time_total / row.count),
    "CPU Mem": lambda row, total: f"{row.cpu_memory_usage} b",
    "Self CPU Mem": lambda row, total: f"{row.self_cpu_memory_usage} b",
    "# of Calls": lambda row, total: str(row.count),
    "Input Shapes": lambda row, total: str(row.input_shapes),
}


class EventList(list):
    """Events or averages of them, which can be printed as a table.

    Examples
    --------
    >>> from cygrad.profiler import profile
    >>> with profile() as p:
    ...     x = cygrad.ones(2).exp()
    >>> "Self CPU" in p.key_averages().table(sort_by="cpu_time_total")
    True
    """

    def __init__(self, events=(), *, with_memory=False, with_shapes=False):
        super().__init__(events)
        self._with_memory, self._with_shapes = with_memory, with_shapes

    @property
    def self_cpu_time_total(self):
        """Total microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, **options):
        """
        Return the averages of events by name.

        Parameters
        ----------
        group_by_input_shape : bool, default False
            Whether to separate events with different shapes.

        Returns
        -------
        EventList of EventAverage
        """
        found = {}
        for event in self:
            key = (event.name, str(event.input_shapes)) if group_by_input_shape else event.name
            if key not in found:
                found[key] = EventAverage(event)
            found[key].add(event)
        return EventList(found.values(), with_memory=self._with_memory, with_shapes=group_by_input_shape)

    def total_average(self):
        """Return the average of all events."""
        total = EventAverage(Event("Total", "range", 0.0, None, []))
        for event in self:
            total.add(event) if isinstance(event, Event) else None
        total.key = "Total"
        return total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, **options):
        """
        Return the events as a text table.

        Parameters
        ----------
        sort_by : str, optional
            An attribute such as "cpu_time_total", "self_cpu_time_total" or "count"; the largest comes first.
        row_limit : int, default 100
            -1: all.
        max_name_column_width, max_shapes_column_width : int
        header : str, optional
        top_level_events_only : bool, default False
        max_src_column_width : optional
            Accepted and ignored.

        Returns
        -------
        str
        """
        rows = [row for row in self if not (top_level_events_only and getattr(row, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda row: getattr(row, sort_by), reverse=True)
        total = sum(row.self_cpu_time_total for row in self) or 1.0
        names = [name for name in COLUMNS
                 if (self._with_memory or "Mem" not in name) and (self._with_shapes or name != "Input Shapes")]
        widths = {"Name": max_name_column_width, "Input Shapes": max_shapes_column_width}
        lines = [names]
        for row in rows if row_limit < 0 else rows[:row_limit]:
            lines.append([_cut(COLUMNS[name](row, total), widths.get(name)) for name in names])
        space = [max(len(line[i]) for line in lines) for i in range(len(names))]
        rule = "  ".join("-" * width for width in space)
        text = [header] if header else []
        for number, line in enumerate(lines):
            text += [rule] * (number < 1)
            text.append("  ".join(part.rjust(width) for part, width in zip(line, space, strict=True)))
            text += [rule] * (number < 1)
        return "\n".join([*text, rule, f"Self CPU time total: {duration(self.self_cpu_time_total)}", ""])

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path):
        """Write a trace file for ``chrome://tracing`` and Perfetto."""
        trace = [{"ph": "X", "cat": event.kind, "name": event.name, "pid": os.getpid(), "tid": event.thread,
                  "ts": event.start, "dur": event.cpu_time, "args": {"Input Dims": event.input_shapes}}
                 for event in self]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": trace}, file)


def _cut(text, width):
    return text if width is None or len(text) <= width else f"{text[:width - 3]}..."


def _in_use():
    """Return the bytes of tensors in use."""
    stats = memory_stats()
    return stats["small_in_use"] + stats["large_in_use"]


class Recorder:
    """Receiver of events; see ``set_recorder``."""

    def __init__(self, shapes=False, memory=False):
        self.events, self._open = [], []
        self._shapes, self._memory = shapes, memory
        self._start = time.perf_counter_ns()
        # PyTorch's names, which programs look up in tables.
        self._prefix = "aten::" if library_name() == "torch" else ""

    def now(self):
        """Return the microseconds since the start."""
        return (time.perf_counter_ns() - self._start) / 1000

    def begin(self, name, kind, arguments=()):
        """Begin an event."""
        shapes = [list(value.shape) if isinstance(value, Tensor) else [] for value in arguments] if self._shapes else []
        parent = self._open[-1] if self._open else None
        event = Event(self._prefix + name if kind == "operator" else name, kind, 0.0, parent, shapes)
        if parent is not None:
            parent.cpu_children.append(event)
        self.events.append(event)
        self._open.append(event)
        if self._memory:
            event.cpu_memory_usage = -_in_use()
        event.start = event.end = self.now()
        return event

    def end(self, event):
        """End the event."""
        event.end = self.now()
        if self._memory:
            event.cpu_memory_usage += _in_use()
        while self._open and self._open.pop() is not event:
            pass
