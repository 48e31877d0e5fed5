"""
nll_loss, cross_entropy and ctc_loss, and their derivatives.

Input is (C), (N, C) or (N, C, d1, ...), targets are without C. A sample is one target. The reduction engine sums the
losses of samples, so results are bit-identical for any number of threads.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memset, strcmp
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty, array_empty_like, array_t, as_real, is_true, register_kernel, release, retain,
    set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, FLOAT32, FLOAT64, INT64, UINT8, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, integers_argument, list_text, new_array,
    text_argument,
)
from cygrad._core.kernels.reduction.reductions cimport SUM, reduce_array, row_sum
from cygrad._core.kernels.reduction.softmax cimport log_softmax_into
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, VALUE_ERROR, message,
)
from cygrad._core.threads.grain cimport COMPUTED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# --------------------------------------------------------------------------------------------------------------- losses

cdef extern from "kernels/nn/loss_loops.h" nogil:
    enum:
        LOSS_TILE
    ctypedef struct samples_t:
        int dtype
        bint each, through_softmax
        int64_t n, inner, ignore
        double smoothing, scale
        const int64_t *targets
        const void *input
        const void *weight
        const void *grad
        void *losses
        void *weights
        void *out
        double (*row_sum)(int dtype, const char *data, int64_t n) noexcept nogil
    void sample_losses(void *context, int64_t begin, int64_t end) noexcept
    void sample_gradients(void *context, int64_t begin, int64_t end) noexcept

ctypedef enum reduce_t:
    NONE
    MEAN_OF
    SUM_OF

ctypedef struct loss_t:
    const char *name
    array_t *input             # log probabilities, contiguous
    array_t *target            # contiguous
    array_t *weight            # contiguous, or NULL
    int64_t ignore
    reduce_t reduction
    double smoothing
    rows_t rows
    int dtype
    int ndim                   # of the input
    int64_t *shape
    array_t *losses            # of samples
    array_t *weights           # of samples
    array_t *grad              # contiguous: of the loss
    array_t *out               # gradient of the input
    bint through_softmax       # compute the gradient of the logits


cdef void _close(loss_t *loss) noexcept nogil:
    release(loss.input)
    release(loss.target)
    release(loss.weight)
    release(loss.losses)
    release(loss.weights)
    release(loss.grad)
    release(loss.out)


cdef int _read_reduction(loss_t *loss, const value_t *value) noexcept nogil:
    cdef const char *text
    cdef int status = text_argument(loss.name, b"reduction", value, &text)
    if status != OK:
        return status
    if strcmp(text, b"none") == 0:
        loss.reduction = NONE
    elif strcmp(text, b"mean") == 0:
        loss.reduction = MEAN_OF
    elif strcmp(text, b"sum") == 0:
        loss.reduction = SUM_OF
    else:
        snprintf(message(), MESSAGE, b"%s: not a valid value for reduction (got '%s', expected 'none', "
                 b"'mean' or 'sum').", loss.name, text)
        return VALUE_ERROR
    return OK


cdef int _read_target(loss_t *loss, const value_t *target, const value_t *weight) noexcept nogil:
    """Read target and weight, and check them against the shape of the input."""
    cdef array_t *array
    cdef int64_t[MAX_DIMS] expected
    cdef int i, n = 0, dim = 1 if loss.ndim > 1 else 0
    cdef bint same
    cdef int status = array_argument(loss.name, b"target", target, &array)
    if status != OK:
        return status
    if loss.ndim == 0:
        snprintf(message(), MESSAGE, b"%s: input needs a dimension of classes (got shape ()).", loss.name)
        return VALUE_ERROR
    if array.dtype != INT64 and array.dtype != UINT8:
        snprintf(message(), MESSAGE, b"%s: target must have dtype int64 or uint8 (got %s). Convert it with .long().",
                 loss.name, dtype_name(array.dtype))
        return RUNTIME_ERROR
    for i in range(loss.ndim):
        if i != dim:
            expected[n] = loss.shape[i]
            n += 1
    same = array.ndim == n
    if same:
        for i in range(n):
            same = same and array.shape[i] == expected[i]
    if not same:
        snprintf(message(), MESSAGE, b"%s: target has the wrong shape for input %s (got %s, expected %s).",
                 loss.name,
                 list_text(loss.ndim, loss.shape), shape_text(array), list_text(n, expected))
        return VALUE_ERROR if n and array.ndim and array.shape[0] != expected[0] else RUNTIME_ERROR
    loss.target = as_contiguous(array, INT64)
    if loss.target == NULL:
        return MEMORY_ERROR
    if weight.kind == NOTHING:
        return OK
    status = array_argument(loss.name, b"weight", weight, &array)
    if status != OK:
        return status
    if array.ndim != 1 or array.shape[0] != loss.shape[dim] or array.dtype != loss.dtype:
        snprintf(message(), MESSAGE, b"%s: weight should be defined for all %lld classes or none (got shape "
                 b"%s of %s, "
                 b"expected (%lld,) of %s).", loss.name, <long long>loss.shape[dim], shape_text(array),
                 dtype_name(array.dtype), <long long>loss.shape[dim], dtype_name(loss.dtype))
        return RUNTIME_ERROR
    loss.weight = as_contiguous(array, -1)
    return OK if loss.weight != NULL else MEMORY_ERROR


cdef int _check_targets(loss_t *loss) noexcept nogil:
    cdef const int64_t *targets = <int64_t *>loss.target.data
    cdef int64_t i
    for i in range(loss.target.size):
        if (targets[i] < 0 or targets[i] >= loss.rows.n) and targets[i] != loss.ignore:
            snprintf(message(), MESSAGE, b"%s: target %lld is out of bounds (got it at element %lld, "
                     b"expected 0 to "
                     b"%lld for %lld classes, or ignore_index %lld).", loss.name, <long long>targets[i],
                     <long long>i,
                     <long long>(loss.rows.n - 1), <long long>loss.rows.n, <long long>loss.ignore)
            return INDEX_ERROR
    return OK


cdef int _open(loss_t *loss, const char *name, int dtype, int ndim, int64_t *shape, const value_t *target,
               const value_t *weight, const value_t *ignore, const value_t *reduction) noexcept nogil:
    """Read the common arguments; the caller closes, also on failure."""
    cdef array_t like
    cdef int status
    loss.name, loss.dtype, loss.ndim, loss.shape = name, dtype, ndim, shape
    if not is_floating(dtype):
        snprintf(message(), MESSAGE, b"%s: input must be float32 or float64 (got %s).", name,
                 dtype_name(dtype))
        return RUNTIME_ERROR
    like.ndim, like.shape = ndim, shape
    rows_along(&like, 1 if ndim > 1 else 0, &loss.rows)
    status = _read_target(loss, target, weight)
    if status == OK:
        status = integer_argument(name, b"ignore_index", ignore, &loss.ignore)
    if status == OK:
        status = _read_reduction(loss, reduction)
    if status == OK:
        status = _check_targets(loss)
    return status


# ---------------------------------------------------------------- forward

cdef void _set_samples(const loss_t *loss, samples_t *samples) noexcept nogil:
    samples.dtype, samples.n, samples.inner = loss.dtype, loss.rows.n, loss.rows.inner
    samples.each, samples.through_softmax = loss.reduction == NONE, loss.through_softmax
    samples.ignore, samples.smoothing, samples.row_sum = loss.ignore, loss.smoothing, row_sum
    samples.targets = <const int64_t *>loss.target.data
    samples.input = loss.input.data if loss.input != NULL else NULL
    samples.weight = loss.weight.data if loss.weight != NULL else NULL


cdef double _number(const array_t *array) noexcept nogil:
    return (<float *>array.data)[0] if array.dtype == FLOAT32 else (<double *>array.data)[0]


cdef int _total(array_t *array, array_t **total) noexcept nogil:
    """Sum all elements."""
    cdef bint[MAX_DIMS] reduced
    cdef int i, status
    for i in range(array.ndim):
        reduced[i] = True
    total[0] = array_empty(array.dtype, 0, NULL)
    if total[0] == NULL:
        return MEMORY_ERROR
    status = reduce_array(SUM, 0, array, reduced, total[0], NULL)
    if status != OK:
        release(total[0])
        total[0] = NULL
    return status


cdef int _losses(loss_t *loss, array_t **result, array_t **total_weight) noexcept nogil:
    """Compute the loss and the sum of the weights of all samples."""
    cdef samples_t samples
    cdef int64_t work = loss.rows.n if loss.smoothing != 0 else 16
    cdef double mean
    cdef int status
    loss.losses = array_empty_like(loss.target, loss.dtype)
    loss.weights = array_empty_like(loss.target, loss.dtype)
    if loss.losses == NULL or loss.weights == NULL:
        return MEMORY_ERROR
    _set_samples(loss, &samples)
    samples.losses, samples.weights = loss.losses.data, loss.weights.data
    parallel_for(sample_losses, &samples, loss.target.size, rows_per_chunk(work, COMPUTED))
    status = _total(loss.weights, total_weight)
    if status != OK:
        return status
    if loss.reduction == NONE:
        result[0] = retain(loss.losses)
        return OK
    status = _total(loss.losses, result)
    if status != OK:
        release(total_weight[0])
    elif loss.reduction == MEAN_OF:
        mean = _number(total_weight[0])
        mean = _number(result[0]) / mean if mean != 0 else NAN
        if loss.dtype == FLOAT32:
            (<float *>result[0].data)[0] = <float>mean
        else:
            (<double *>result[0].data)[0] = mean
    return status


cdef int nll_loss_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nll_loss(input, target, weight, ignore_index, reduction) -> result, total_weight."""
    cdef loss_t loss
    cdef array_t *input
    cdef array_t *result
    cdef array_t *total
    cdef int status = array_argument(b"nll_loss", b"input", &arguments[0], &input)
    if status != OK:
        return status
    memset(&loss, 0, sizeof(loss))
    status = _open(&loss, b"nll_loss", input.dtype, input.ndim, input.shape, &arguments[1], &arguments[2],
                   &arguments[3], &arguments[4])
    if status == OK:
        loss.input = as_contiguous(input, -1)
        status = _losses(&loss, &result, &total) if loss.input != NULL else MEMORY_ERROR
    _close(&loss)
    if status == OK:
        set_array(&results[0], result)
        set_array(&results[1], total)
    return status


cdef int cross_entropy_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    -> loss, log_probabilities, total_weight."""
    cdef loss_t loss
    cdef array_t *input
    cdef array_t *logits
    cdef array_t *result
    cdef array_t *total
    cdef int status = array_argument(b"cross_entropy", b"input", &arguments[0], &input)
    if status != OK:
        return status
    memset(&loss, 0, sizeof(loss))
    status = _open(&loss, b"cross_entropy", input.dtype, input.ndim, input.shape, &arguments[1],
                   &arguments[2],
                   &arguments[3], &arguments[4])
    if status == OK:
        loss.smoothing = as_real(&arguments[5]) if arguments[5].kind != NOTHING else 0
        if not (0 <= loss.smoothing <= 1):
            snprintf(message(), MESSAGE, b"cross_entropy: label_smoothing must be between 0.0 and 1.0 (got "
                     b"%g).",
                     loss.smoothing)
            status = RUNTIME_ERROR
    if status == OK:
        logits = as_contiguous(input, -1)
        loss.input = array_empty_like(input, -1)
        if logits != NULL and loss.input != NULL:
            log_softmax_into(logits, 1 if input.ndim > 1 else 0, loss.input)
            status = _losses(&loss, &result, &total)
        else:
            status = MEMORY_ERROR
        release(logits)
    if status == OK:
        set_array(&results[0], result)
        set_array(&results[1], retain(loss.input))
        set_array(&results[2], total)
    _close(&loss)
    return status


# ---------------------------------------------------------------- backward

cdef int _gradients(loss_t *loss, const value_t *grad_value, const value_t *total_value,
                    value_t *results) noexcept nogil:
    cdef array_t *grad
    cdef array_t *total
    cdef samples_t samples
    cdef double total_weight
    cdef int64_t tiles
    cdef int status = array_argument(loss.name, b"grad", grad_value, &grad)
    if status == OK:
        status = array_argument(loss.name, b"total_weight", total_value, &total)
    if status == OK and grad.size != (loss.target.size if loss.reduction == NONE else 1):
        snprintf(message(), MESSAGE, b"%s: grad has the wrong shape (got %s, expected that of the loss).",
                 loss.name,
                 shape_text(grad))
        status = RUNTIME_ERROR
    if status == OK and (total.dtype != loss.dtype or total.size != 1):
        snprintf(message(), MESSAGE, b"%s: total_weight is not that of the forward (got shape %s of %s).",
                 loss.name,
                 shape_text(total), dtype_name(total.dtype))
        status = RUNTIME_ERROR
    if status == OK:
        status = new_array(loss.name, loss.dtype, loss.ndim, loss.shape, &loss.out)
    if status != OK:
        return status
    loss.grad = as_contiguous(grad, loss.dtype)
    if loss.grad == NULL:
        return MEMORY_ERROR
    total_weight = _number(total)
    _set_samples(loss, &samples)
    samples.grad, samples.out, samples.scale = loss.grad.data, loss.out.data, 1
    if loss.reduction == MEAN_OF:
        samples.scale = 1 / total_weight if total_weight != 0 else NAN
    if loss.out.size:
        tiles = loss.rows.outer * ((loss.rows.inner + LOSS_TILE - 1) // LOSS_TILE)
        parallel_for(sample_gradients, &samples, tiles,
                     rows_per_chunk(loss.rows.n * min(<int64_t>LOSS_TILE, loss.rows.inner), COMPUTED))
    set_array(results, retain(loss.out))
    return OK


cdef int nll_loss_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nll_loss_backward(grad, target, weight, total_weight, ignore_index, reduction, shape)."""
    cdef loss_t loss
    cdef array_t *total
    cdef const int64_t *shape
    cdef int count, status = array_argument(b"nll_loss_backward", b"total_weight", &arguments[3], &total)
    if status == OK:
        status = integers_argument(b"nll_loss_backward", b"shape", &arguments[6], &count, &shape)
    if status != OK:
        return status
    memset(&loss, 0, sizeof(loss))
    status = _open(&loss, b"nll_loss_backward", total.dtype, count, <int64_t *>shape, &arguments[1],
                   &arguments[2],
                   &arguments[4], &arguments[5])
    if status == OK:
        status = _gradients(&loss, &arguments[0], &arguments[3], results)
    _close(&loss)
    return status


cdef int cross_entropy_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cross_entropy_backward(grad, log_probabilities, target, weight, total_weight, ignore_index, reduction,
    label_smoothing)."""
    cdef loss_t loss
    cdef array_t *input
    cdef int status = array_argument(b"cross_entropy_backward", b"log_probabilities", &arguments[1], &input)
    if status != OK:
        return status
    memset(&loss, 0, sizeof(loss))
    status = _open(&loss, b"cross_entropy_backward", input.dtype, input.ndim, input.shape, &arguments[2],
                   &arguments[3],
                   &arguments[5], &arguments[6])
    if status == OK:
        loss.smoothing = as_real(&arguments[7]) if arguments[7].kind != NOTHING else 0
        loss.through_softmax = True
        loss.input = as_contiguous(input, -1)
        status = _gradients(&loss, &arguments[0], &arguments[4],
                            results) if loss.input != NULL else MEMORY_ERROR
    _close(&loss)
    return status


register_kernel("nll_loss", nll_loss_kernel)
register_kernel("nll_loss_backward", nll_loss_backward_kernel)
register_kernel("cross_entropy", cross_entropy_kernel)
register_kernel("cross_entropy_backward", cross_entropy_backward_kernel)


# ------------------------------------------------------------------------------------------------------------- ctc loss

# States of CTC alignments, their scores, and the recurrences of derivatives (Graves et al., 2006).
#
# The states of a sample are its labels with blanks before, between and after them. At each step an alignment stays in
# its state, or moves on by one, or by two where allowed. Samples are independent, so results are bit-identical for any
# number of threads.

cdef extern from "kernels/nn/ctc_loss.h" nogil:
    void (*alignment_scores[2])(const void *shares, const uint8_t *skip, void *scores, int64_t steps, int64_t all,
                                int64_t row, int64_t n)
    void (*alignment_recurrences[2][2])(const void *values, const void *scores, const void *shares,
                                        const uint8_t *skip, void *out, int64_t steps, int64_t all, int64_t row,
                                        int64_t n)

cdef enum:
    SCORE = 8             # additions that a score costs


# ---- states

cdef int _fill_states(const int64_t *labels, const int64_t *lengths, int64_t count, int64_t step, int64_t longest,
                      int64_t classes, int64_t blank, int64_t *states, uint8_t *skip) noexcept nogil:
    """Fill the states of each sample and the mask of allowed skips; `step` is 0 for concatenated labels."""
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
        snprintf(message(), MESSAGE, b"ctc_loss: targets and target_lengths do not match (got shape %s).",
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
    """Process samples begin..end."""
    cdef alignments_t *work = <alignments_t *>context
    cdef int double_precision = work.shares.dtype == FLOAT64
    cdef int64_t sample, all_ = work.shares.shape[0], n = work.shares.shape[2], row = work.shares.shape[1] * n
    cdef int64_t at, length
    cdef const uint8_t *skip
    for sample in range(begin, end):
        at, length = sample * n * itemsize(work.shares.dtype), min(work.lengths[sample], all_)
        skip = <uint8_t *>work.skip.data + sample * n
        if work.values == NULL:
            alignment_scores[double_precision](work.shares.data + at, skip, work.out.data + at, length, all_, row, n)
        else:
            alignment_recurrences[work.reverse][double_precision](
                work.values.data + at, work.scores.data + at, work.shares.data + at, skip, work.out.data + at, length,
                all_, row, n)


cdef int _operand(const value_t *value, const array_t *shares, array_t **contiguous) noexcept nogil:
    """Read an array of the shape of the scores."""
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
    """Implement alignment_scores and alignment_recurrence; `rest`: shares, skip and lengths."""
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
        snprintf(message(), MESSAGE, b"ctc_loss: the scores do not match %d samples (got shape %s).", count,
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
        parallel_for(_samples, &work, count, rows_per_chunk(size, SCORE))
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
