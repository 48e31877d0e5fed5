"""Working memory of one execution of a program."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.optimizers.update_batch cimport update_t


cdef run_frame_t *new_frame(int n_slots, int n_arguments, int n_entries, int n_updates, int n_tensors,
                               int n_outgoing, int n_draws) noexcept:
    cdef run_frame_t *frame = <run_frame_t *>calloc(1, sizeof(run_frame_t))
    if frame == NULL:
        return NULL
    frame.table = <array_t **>calloc(n_slots + 1, sizeof(array_t *))
    frame.views = <array_t **>calloc(n_slots + 1, sizeof(array_t *))
    frame.pending_uses = <int64_t *>calloc(n_slots + 1, sizeof(int64_t))
    frame.arguments = <value_t *>calloc(n_arguments + 1, sizeof(value_t))
    frame.entries = <array_t **>calloc(n_entries + 1, sizeof(array_t *))
    frame.updates = <update_t *>calloc(n_updates + 1, sizeof(update_t))
    frame.tensors = <void **>calloc(n_tensors + 1, sizeof(void *))
    frame.targets = <gradient_t **>calloc(n_tensors + 1, sizeof(gradient_t *))
    frame.gradients = <array_t **>calloc(n_tensors + 1, sizeof(array_t *))
    frame.outgoing = <array_t **>calloc(n_outgoing + 1, sizeof(array_t *))
    frame.drawn = <array_t **>calloc(n_draws + 1, sizeof(array_t *))
    if frame.table and frame.views and frame.pending_uses and frame.arguments and frame.entries and frame.updates and (
            frame.tensors and frame.targets and frame.gradients and frame.outgoing and frame.drawn):
        return frame
    free_frame(frame, n_slots)
    return NULL


cdef void free_frame(run_frame_t *frame, int n_slots) noexcept:
    cdef int i
    for i in range(n_slots):
        if frame.views != NULL and frame.views[i] != NULL:
            frame.views[i].storage = NULL
            frame.views[i].version = NULL
            release(frame.views[i])
    free(frame.table)
    free(frame.views)
    free(frame.pending_uses)
    free(frame.arguments)
    free(frame.entries)
    free(frame.updates)
    free(frame.tensors)
    free(frame.targets)
    free(frame.gradients)
    free(frame.outgoing)
    free(frame.drawn)
    free(frame)
