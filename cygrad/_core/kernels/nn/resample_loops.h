/* Resampling along each dimension, for one type. The includer defines REAL and NAME(function).

   Lines of the input are combined into a buffer of one line, then its elements. */

static inline __attribute__((always_inline)) void NAME(add_scaled)(
        REAL *target, const REAL *source, REAL weight, int64_t n, const int first) {
    if (first)
        for (int64_t k = 0; k < n; k++)
            target[k] = weight * source[k];
    else
        for (int64_t k = 0; k < n; k++)
            target[k] += weight * source[k];
}

TARGET_CLONES
static void NAME(resample)(const resampling_t *r, const REAL *input, REAL *result, REAL *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1]; b++, result += out) {
            const REAL *line = input + (x->index[a * x->taps] * r->size[1] + y->index[b * y->taps]) * width;
            if (x->taps * y->taps > 1) {
                int first = 1;
                for (int64_t i = a * x->taps; i < (a + 1) * x->taps; i++)
                    for (int64_t j = b * y->taps; j < (b + 1) * y->taps; j++) {
                        const double weight = x->weight[i] * y->weight[j];
                        if (weight == 0)
                            continue;      /* skip weight 0: the element may be nan */
                        NAME(add_scaled)(buffer, input + (x->index[i] * r->size[1] + y->index[j]) * width,
                                         (REAL)weight, width, first);
                        first = 0;
                    }
                line = buffer;
            }
            if (z->taps == 1)
                for (int64_t c = 0; c < out; c++)
                    result[c] = line[z->index[c]];
            else if (z->taps == 2)
                for (int64_t c = 0; c < out; c++) {
                    const REAL left = (REAL)z->weight[2 * c], right = (REAL)z->weight[2 * c + 1];
                    result[c] = right == 0 ? left * line[z->index[2 * c]]
                        : left * line[z->index[2 * c]] + right * line[z->index[2 * c + 1]];
                }
            else
                for (int64_t c = 0; c < out; c++) {
                    REAL value = 0;
                    for (int64_t k = c * z->taps; k < (c + 1) * z->taps; k++)
                        if (z->weight[k] != 0)
                            value += (REAL)z->weight[k] * line[z->index[k]];
                    result[c] = value;
                }
        }
}

/* Transpose of nearest interpolation, where the outputs of an input element are contiguous: add lines, then their
   elements. `buffer` holds a line of the output. */
TARGET_CLONES
static void NAME(resample_back_nearest)(const resampling_t *r, const REAL *grad, REAL *result, REAL *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    int doubled = out == 2 * width;
    for (int64_t c = 0; c < out && doubled; c++)
        doubled = z->index[c] == c / 2;
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1];) {
            const int64_t row = y->index[b];
            REAL *line = result + (x->index[a] * r->size[1] + row) * width;
            const REAL *sums = grad;
            if (b + 1 < r->out[1] && y->index[b + 1] == row) {
                for (int64_t c = 0; c < out; c++)
                    buffer[c] = grad[c] + grad[out + c];
                for (b += 2, grad += 2 * out; b < r->out[1] && y->index[b] == row; b++, grad += out)
                    NAME(add_scaled)(buffer, grad, 1, out, 0);
                sums = buffer;
            } else {
                b++;
                grad += out;
            }
            if (doubled)
                for (int64_t k = 0; k < width; k++)
                    line[k] += sums[2 * k] + sums[2 * k + 1];
            else
                for (int64_t c = 0; c < out;) {
                    const int64_t k = z->index[c];
                    REAL sum = sums[c++];
                    while (c < out && z->index[c] == k)
                        sum += sums[c++];
                    line[k] += sum;
                }
        }
}

/* Transpose; `result` starts at zero. */
TARGET_CLONES
static void NAME(resample_back)(const resampling_t *r, const REAL *grad, REAL *result, REAL *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    if (x->taps * y->taps * z->taps == 1) {
        NAME(resample_back_nearest)(r, grad, result, buffer);
        return;
    }
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1]; b++, grad += out) {
            for (int64_t k = 0; k < width; k++)
                buffer[k] = 0;
            for (int64_t c = 0; c < out; c++)
                for (int64_t k = c * z->taps; k < (c + 1) * z->taps; k++)
                    if (z->weight[k] != 0)
                        buffer[z->index[k]] += (REAL)z->weight[k] * grad[c];
            for (int64_t i = a * x->taps; i < (a + 1) * x->taps; i++)
                for (int64_t j = b * y->taps; j < (b + 1) * y->taps; j++) {
                    const double weight = x->weight[i] * y->weight[j];
                    if (weight != 0)
                        NAME(add_scaled)(result + (x->index[i] * r->size[1] + y->index[j]) * width, buffer,
                                         (REAL)weight, width, 0);
                }
        }
}
