"""
Time of operations and nodes: `profile`, and `record_function` for parts of a program.

A block of `profile` times every operation of the thread, and every node of its backwards, which then run serially on
this thread. Outside of it operations only test one flag.
"""

from cygrad._core import public_dir as _public_dir
from cygrad.profiler.events import Event, EventAverage, EventList
from cygrad.profiler.profile import (
    ProfilerAction,
    ProfilerActivity,
    ProfilerState,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "Event", "EventAverage", "EventList", "ProfilerAction", "ProfilerActivity", "ProfilerState", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]

__dir__ = _public_dir(__name__)
