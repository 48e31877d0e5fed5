"""
Alignments of labels to steps: the states that they go through, the scores of states, and what derivatives are made of.

The states of a sample are its labels with a blank before, between and after them. At each step an alignment stays in
its state, goes on to the next one, or to the next but one where that may be (Graves et al., 2006). Samples are
independent: threads do not change a bit.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport BOOL, FLOAT32, FLOAT64, INT64, dtype_name, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, new_array)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from *:
    """
    #define LOOPS "kernels/nn/ctc_loss_loops.h"
    #include "simd/simd_targets.h"
    #undef LOOPS
    typedef void (*scores_t)(const void *shares, const uint8_t *skip, void *scores, int64_t steps, int64_t all,
                             int64_t row, int64_t n);
    typedef void (*carry_t)(const void *values, const void *scores, const void *shares, const uint8_t *skip, void *out,
                            int64_t steps, int64_t all, int64_t row, int64_t n);
    static const scores_t score_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(alignment_scores);
    static const carry_t forward_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(alignment_forward);
    static const carry_t reverse_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(alignment_reverse);
    """
    ctypedef void (*scores_t)(const void *shares, const uint8_t *skip, void *scores, int64_t steps, int64_t all,
                              int64_t row, int64_t n) noexcept nogil
    ctypedef void (*carry_t)(const void *values, const void *scores, const void *shares, const uint8_t *skip,
                             void *out, int64_t steps, int64_t all, int64_t row, int64_t n) noexcept nogil
    scores_t[3][2] score_loops
    carry_t[3][2] forward_loops
    carry_t[3][2] reverse_loops
    int simd_target() nogil

cdef enum:
    PIECE = 1 << 13       # scores worth a thread


# ---- states

cdef int _fill_states(const int64_t *labels, const int64_t *lengths, int64_t count, int64_t step, int64_t longest,
                      int64_t classes, int64_t blank, int64_t *states, uint8_t *skip) noexcept nogil:
    """States of each sample, and which are reached from the last but one; `step` is 0 for labels one after another."""
    cdef int64_t sample, k, label, n = 2 * longest + 1
    cdef const int64_t *row = labels
    for sample in range(count):
        for k in range(n):
            states[k], skip[k] = blank, False
        for k in range(lengths[sample]):
            label = row[k]
            if not 0 <= label < classes or label == blank:
                snprintf(message(), MESSAGE, b"ctc_loss: labels must be classes other than the blank (got %lld, "
                         b"expected 0 to %lld, but not %lld).", <long long>label,
                         <long long>(classes - 1), <long long>blank)
                return RUNTIME_ERROR
            states[2 * k + 1] = label
            skip[2 * k + 1] = k > 0 and label != states[2 * k - 1]
        states += n
        skip += n
        row += step if step else lengths[sample]
    return OK


cdef int alignment_states_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """alignment_states(targets, lengths, classes, blank): int64 and bool, a row for each sample."""
    cdef array_t *targets
    cdef array_t *labels
    cdef array_t *states = NULL
    cdef array_t *skip = NULL
    cdef const int64_t *lengths
    cdef int64_t[2] shape
    cdef int64_t classes = 0, blank = 0, longest = 0, total = 0
    cdef bint fits
    cdef int i, count = 0, status = array_argument(b"ctc_loss", b"targets", &arguments[0], &targets)
    status = status or integers_argument(b"ctc_loss", b"target_lengths", &arguments[1], &count, &lengths)
    status = status or integer_argument(b"ctc_loss", b"classes", &arguments[2], &classes)
    status = status or integer_argument(b"ctc_loss", b"blank", &arguments[3], &blank)
    if status != OK:
        return status
    for i in range(count):
        if not 0 <= lengths[i] <= targets.size:
            total = -1
            break
        longest, total = max(longest, lengths[i]), total + lengths[i]
    fits = total >= 0 and targets.dtype == INT64 and 1 <= targets.ndim <= 2
    if fits and targets.ndim == 1:
        fits = total == targets.size
    elif fits:
        fits = targets.shape[0] == count and longest <= targets.shape[1]
    if not fits:
        snprintf(message(), MESSAGE, b"ctc_loss: targets and target_lengths do not fit (got shape %s).",
                 shape_text(targets))
        return RUNTIME_ERROR
    shape[0], shape[1] = count, 2 * longest + 1
    labels = as_contiguous(targets, -1)
    status = OK if labels != NULL else MEMORY_ERROR
    status = status or new_array(b"ctc_loss", INT64, 2, shape, &states)
    status = status or new_array(b"ctc_loss", BOOL, 2, shape, &skip)
    status = status or _fill_states(<int64_t *>labels.data, lengths, count, labels.shape[1] if labels.ndim == 2 else 0,
                                    longest, classes, blank, <int64_t *>states.data, <uint8_t *>skip.data)
    release(labels)
    if status != OK:
        release(states)
        release(skip)
        return status
    array_result(states, &results[0])
    return array_result(skip, &results[1])


# ---- scores

ctypedef struct alignments_t:
    array_t *values       # NULL for scores; contiguous as all of them
    array_t *scores       # (steps, samples, states)
    array_t *shares       # of the same shape
    array_t *skip         # (samples, states)
    array_t *out
    const int64_t *lengths
    bint reverse


cdef void _samples(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Samples begin..end."""
    cdef alignments_t *work = <alignments_t *>context
    cdef int set_ = simd_target(), double_precision = work.shares.dtype == FLOAT64
    cdef int64_t sample, all_ = work.shares.shape[0], n = work.shares.shape[2], row = work.shares.shape[1] * n
    cdef int64_t at, length
    cdef const uint8_t *skip
    cdef carry_t carry = forward_loops[set_][double_precision]
    if work.reverse:
        carry = reverse_loops[set_][double_precision]
    for sample in range(begin, end):
        at, length = sample * n * itemsize(work.shares.dtype), min(work.lengths[sample], all_)
        skip = <uint8_t *>work.skip.data + sample * n
        if work.values == NULL:
            score_loops[set_][double_precision](work.shares.data + at, skip, work.out.data + at, length, all_, row, n)
        else:
            carry(work.values.data + at, work.scores.data + at, work.shares.data + at, skip, work.out.data + at, length,
                  all_, row, n)


cdef int _operand(const value_t *value, const array_t *shares, array_t **contiguous) noexcept nogil:
    """A number for each score."""
    cdef array_t *array
    cdef int status = array_argument(b"ctc_loss", b"the scores", value, &array)
    status = status or check_same_shape(b"ctc_loss", b"scores", array, 3, shares.shape)
    if status == OK and array.dtype != shares.dtype:
        snprintf(message(), MESSAGE, b"ctc_loss: dtypes differ (got %s and %s).", dtype_name(array.dtype),
                 dtype_name(shares.dtype))
        return RUNTIME_ERROR
    if status == OK:
        contiguous[0] = as_contiguous(array, -1)
        status = OK if contiguous[0] != NULL else MEMORY_ERROR
    return status


cdef int _align(const value_t *values, const value_t *scores, const value_t *rest, bint reverse,
                value_t *results) noexcept nogil:
    """`rest`: shares, skip and lengths."""
    cdef alignments_t work
    cdef array_t *shares
    cdef array_t *skip
    cdef int64_t size
    cdef int count = 0, status = array_argument(b"ctc_loss", b"the shares", &rest[0], &shares)
    memset(&work, 0, sizeof(work))
    work.reverse = reverse
    status = status or array_argument(b"ctc_loss", b"the steps left out", &rest[1], &skip)
    status = status or integers_argument(b"ctc_loss", b"input_lengths", &rest[2], &count, &work.lengths)
    if status != OK:
        return status
    if shares.dtype != FLOAT32 and shares.dtype != FLOAT64:
        snprintf(message(), MESSAGE, b"ctc_loss: expected float32 or float64 (got %s).", dtype_name(shares.dtype))
        return NOT_IMPLEMENTED
    if shares.ndim != 3 or shares.shape[1] != count or skip.dtype != BOOL:
        snprintf(message(), MESSAGE, b"ctc_loss: the scores do not fit %d samples (got shape %s).", count,
                 shape_text(shares))
        return RUNTIME_ERROR
    status = check_same_shape(b"ctc_loss", b"states", skip, 2, &shares.shape[1])
    if values != NULL:
        status = status or _operand(values, shares, &work.values)
        status = status or _operand(scores, shares, &work.scores)
    status = status or new_array(b"ctc_loss", shares.dtype, 3, shares.shape, &work.out)
    if status == OK:
        work.shares, work.skip = as_contiguous(shares, -1), as_contiguous(skip, -1)
        status = OK if work.shares != NULL and work.skip != NULL else MEMORY_ERROR
    if status == OK and shares.size:
        size = shares.shape[0] * shares.shape[2]
        parallel_for(_samples, &work, count, max(<int64_t>1, PIECE // size))
    release(work.values)
    release(work.scores)
    release(work.shares)
    release(work.skip)
    if status != OK:
        release(work.out)
        return status
    return array_result(work.out, &results[0])


cdef int alignment_scores_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """alignment_scores(shares, skip, lengths)."""
    return _align(NULL, NULL, arguments, False, results)


cdef int alignment_recurrence_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """alignment_recurrence(values, scores, shares, skip, lengths, reverse)."""
    return _align(&arguments[0], &arguments[1], &arguments[2], is_true(&arguments[5]), results)


register_kernel("alignment_states", alignment_states_kernel)
register_kernel("alignment_scores", alignment_scores_kernel)
register_kernel("alignment_recurrence", alignment_recurrence_kernel)
