"""
How long operations and nodes take: `profile`, and `record_function` for parts of a program.

Within a block of `profile` every operation of the thread is timed, and every node of its backwards, which then run one
after the other on this thread. Outside of it operations look at one flag, and that is all.
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
