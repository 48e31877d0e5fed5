"""Profiled blocks, and schedules of recorded steps."""

import enum
import functools
import os
import time

from cygrad._core.dispatch.operator_modes import recorder, set_recorder
from cygrad.profiler.events import EventList, Recorder

__all__ = ["ProfilerAction", "ProfilerActivity", "ProfilerState", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(enum.Enum):
    """Profiled devices: the CPU.

    Examples
    --------
    >>> cygrad.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerState(enum.Enum):
    """Ways of profiling: there is one.

    Examples
    --------
    >>> from cygrad.profiler import ProfilerState
    >>> ProfilerState.CPU.name
    'CPU'
    """

    Disabled, CPU, CUDA, NVTX, ITT, PRIVATEUSE1, KINETO = range(7)


class ProfilerAction(enum.Enum):
    """Action in a step: none, warm up, record, record and export.

    Examples
    --------
    >>> cygrad.profiler.schedule(wait=1, warmup=0, active=1)(0).name
    'NONE'
    """

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities():
    """Return the supported activities: the CPU.

    Examples
    --------
    >>> [activity.name for activity in cygrad.profiler.supported_activities()]
    ['CPU']
    """
    return {ProfilerActivity.CPU}


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """
    Return a schedule of recorded steps: after `skip_first`, each cycle has `wait`, `warmup` and `active` steps.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of a cycle.
    repeat : int, default 0
        Number of cycles; 0: unlimited.
    skip_first : int, default 0
        Steps before the first cycle.
    skip_first_wait : int, default 0
        Whether the first cycle skips `wait`.

    Returns
    -------
    callable
        int -> ProfilerAction.

    Examples
    --------
    >>> import cygrad.profiler
    >>> steps = cygrad.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [steps(i).name for i in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(f"schedule: steps must not be negative, and some be active (got wait={wait}, "
                             f"warmup={warmup}, active={active}, repeat={repeat}).")

    def action(step):
        step -= skip_first
        if skip_first_wait:
            step += wait
        if step < 0:
            return ProfilerAction.NONE
        number, place = divmod(step, wait + warmup + active)
        if (repeat and number >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """
    Return a function for ``on_trace_ready`` that writes a trace to a folder.

    Parameters
    ----------
    dir_name : str
    worker_name : str, optional
        Prefix of the file names.
    use_gzip : bool, default False
        Whether they are compressed.

    Examples
    --------
    >>> import os
    >>> from cygrad.profiler import profile, tensorboard_trace_handler
    >>> with profile(on_trace_ready=tensorboard_trace_handler("traces", "worker")):
    ...     x = cygrad.ones(2).exp()
    >>> len(os.listdir("traces"))
    1
    """
    def write(profiler):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or f'{os.uname().nodename}_{os.getpid()}'}.{time.time_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name + ".gz" * use_gzip))
    return write


class profile:
    """
    Context manager that times operations and nodes.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Only the CPU is available.
    schedule : callable, optional
        Recorded steps, see `schedule`; call `step` after each step.
    on_trace_ready : callable, optional
        Called with the profiler at the end of a cycle.
    record_shapes, profile_memory : bool, default False
        Whether to record shapes of operands and allocated bytes.
    enabled : bool, default True
        False: do nothing.
    with_stack, with_flops, with_modules, experimental_config, use_cuda, use_device, use_cpu, use_kineto : optional
        Accepted and ignored.

    Examples
    --------
    >>> from cygrad.profiler import profile, record_function
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> with profile() as prof, record_function("everything"):
    ...     x.exp().sum().backward()
    >>> sorted(row.key for row in prof.key_averages() if "Backward" not in row.key)
    ['AccumulateGrad', 'everything', 'exp', 'ones_like', 'sum']
    """

    def __init__(self, *args, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, enabled=True, with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, **options):
        if args and isinstance(args[0], bool):            # of autograd.profiler: the first is `enabled`
            enabled = args[0]
        self.activities = set(activities or (args[0] if args and not isinstance(args[0], bool) else ())) or (
            supported_activities())
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.enabled = record_shapes, profile_memory, enabled
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._recorder = self._former = self._step = None
        self._events = EventList()

    # ---- begin and end

    def start(self):
        """Start profiling."""
        if self.enabled:
            self._former = recorder()
            self._change(ProfilerAction.NONE, self.current_action)

    def stop(self):
        """Stop profiling."""
        if self.enabled:
            self._end_step()
            self._change(self.current_action, ProfilerAction.NONE)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()
        return False

    def step(self):
        """Mark the end of a step of the program."""
        self._end_step()
        former = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(former, self.current_action)
        if self._recorder is not None:
            self._step = self._recorder.begin(f"ProfilerStep#{self.step_num}", "range")

    def _end_step(self):
        if self._step is not None and self._recorder is not None:
            self._recorder.end(self._step)
        self._step = None

    def _change(self, former, action):
        """Switch from the action of one step to that of the next."""
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        over = former is ProfilerAction.RECORD_AND_SAVE or (former in recording and action not in recording)
        if over and self._recorder is not None:
            set_recorder(self._former)
            self._events = EventList(self._recorder.events, with_memory=self.profile_memory,
                                     with_shapes=self.record_shapes)
            self._recorder = None
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if action in recording and self._recorder is None:
            self._recorder = Recorder(self.record_shapes, self.profile_memory)
            set_recorder(self._recorder)

    # ---- results

    def events(self):
        """Return all events, in the order of their starts."""
        return self._events

    function_events = property(events)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, **options):
        """Return the averages of events by name; see `EventList.key_averages`."""
        return self._events.key_averages(group_by_input_shape)

    def total_average(self):
        """Return the average of all events."""
        return self._events.total_average()

    def table(self, sort_by=None, row_limit=100, **options):
        """Return the events as a text table; see `EventList.table`."""
        return self._events.table(sort_by, row_limit, **options)

    self_cpu_time_total = property(lambda self: self._events.self_cpu_time_total, doc="Microseconds of all events.")

    def export_chrome_trace(self, path):
        """Write a trace file for ``chrome://tracing`` and Perfetto, compressed for the suffix ``.gz``."""
        path = os.fspath(path)
        if not path.endswith(".gz"):
            return self._events.export_chrome_trace(path)
        import gzip
        plain = path[:-3]
        self._events.export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(path, "wb") as target:
            target.writelines(source)
        os.remove(plain)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks of events for flame graphs: names from the outermost, and microseconds."""
        with open(path, "w", encoding="utf-8") as file:
            for event in self._events:
                names, outer = [], event
                while outer is not None:
                    names.append(outer.name)
                    outer = outer.cpu_parent
                file.write(f"{';'.join(reversed(names))} {int(event.self_cpu_time)}\n")

    def add_metadata(self, key, value):
        """Do nothing."""

    add_metadata_json = preset_metadata_json = add_metadata

    def __str__(self):
        return str(self._events)

    def __repr__(self):
        return f"<profile with {len(self._events)} events>"


class record_function:
    """
    Context manager and decorator that records a part of a program as one event.

    Parameters
    ----------
    name : str
    args : str, optional
        Appended to the name.

    Examples
    --------
    >>> from cygrad.profiler import profile, record_function
    >>> with profile() as run:
    ...     with record_function("my part"):
    ...         y = cygrad.ones(2).exp()
    >>> "my part" in [event.key for event in run.key_averages()]
    True
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        self._recorder = recorder()
        if self._recorder is not None:
            self._event = self._recorder.begin(self.name, "range")
        return self

    def __exit__(self, *error):
        if self._recorder is not None:
            self._recorder.end(self._event)
        return False

    def __call__(self, function):
        """Decorate a function, whose calls are recorded."""
        @functools.wraps(function)
        def recorded(*args, **options):
            with record_function(self.name, self.args):
                return function(*args, **options)
        return recorded
