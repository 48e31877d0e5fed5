/* Resampling along each dimension; see resample.h. Lines of the input are combined into a buffer of one line, then its
   elements. */

template <class T> INLINE void add_scaled(
        T *target, const T *source, T weight, int64_t n, const int first) {
    if (first)
        for (int64_t k = 0; k < n; k++)
            target[k] = weight * source[k];
    else
        for (int64_t k = 0; k < n; k++)
            target[k] += weight * source[k];
}

template <class T> static void resample(const resampling_t *r, const T *input, T *result, T *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1]; b++, result += out) {
            const T *line = input + (x->index[a * x->taps] * r->size[1] + y->index[b * y->taps]) * width;
            if (x->taps * y->taps > 1) {
                int first = 1;
                for (int64_t i = a * x->taps; i < (a + 1) * x->taps; i++)
                    for (int64_t j = b * y->taps; j < (b + 1) * y->taps; j++) {
                        const double weight = x->weight[i] * y->weight[j];
                        if (weight == 0)
                            continue;      /* skip weight 0: the element may be nan */
                        add_scaled<T>(buffer, input + (x->index[i] * r->size[1] + y->index[j]) * width,
                                         (T)weight, width, first);
                        first = 0;
                    }
                line = buffer;
            }
            if (z->taps == 1)
                for (int64_t c = 0; c < out; c++)
                    result[c] = line[z->index[c]];
            else if (z->taps == 2)
                for (int64_t c = 0; c < out; c++) {
                    const T left = (T)z->weight[2 * c], right = (T)z->weight[2 * c + 1];
                    result[c] = right == 0 ? left * line[z->index[2 * c]]
                        : left * line[z->index[2 * c]] + right * line[z->index[2 * c + 1]];
                }
            else
                for (int64_t c = 0; c < out; c++) {
                    T value = 0;
                    for (int64_t k = c * z->taps; k < (c + 1) * z->taps; k++)
                        if (z->weight[k] != 0)
                            value += (T)z->weight[k] * line[z->index[k]];
                    result[c] = value;
                }
        }
}

/* Transpose of nearest interpolation, where the outputs of an input element are contiguous: add lines, then their
   elements. `buffer` holds a line of the output. */
template <class T> static void resample_back_nearest(const resampling_t *r, const T *grad, T *result, T *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    int doubled = out == 2 * width;
    for (int64_t c = 0; c < out && doubled; c++)
        doubled = z->index[c] == c / 2;
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1];) {
            const int64_t row = y->index[b];
            T *line = result + (x->index[a] * r->size[1] + row) * width;
            const T *sums = grad;
            if (b + 1 < r->out[1] && y->index[b + 1] == row) {
                for (int64_t c = 0; c < out; c++)
                    buffer[c] = grad[c] + grad[out + c];
                for (b += 2, grad += 2 * out; b < r->out[1] && y->index[b] == row; b++, grad += out)
                    add_scaled<T>(buffer, grad, 1, out, 0);
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
                    T sum = sums[c++];
                    while (c < out && z->index[c] == k)
                        sum += sums[c++];
                    line[k] += sum;
                }
        }
}

/* Transpose; `result` starts at zero. */
template <class T> static void resample_back(const resampling_t *r, const T *grad, T *result, T *buffer) {
    const axis_t *x = &r->axis[0], *y = &r->axis[1], *z = &r->axis[2];
    const int64_t width = r->size[2], out = r->out[2];
    if (x->taps * y->taps * z->taps == 1) {
        resample_back_nearest<T>(r, grad, result, buffer);
        return;
    }
    for (int64_t a = 0; a < r->out[0]; a++)
        for (int64_t b = 0; b < r->out[1]; b++, grad += out) {
            for (int64_t k = 0; k < width; k++)
                buffer[k] = 0;
            for (int64_t c = 0; c < out; c++)
                for (int64_t k = c * z->taps; k < (c + 1) * z->taps; k++)
                    if (z->weight[k] != 0)
                        buffer[z->index[k]] += (T)z->weight[k] * grad[c];
            for (int64_t i = a * x->taps; i < (a + 1) * x->taps; i++)
                for (int64_t j = b * y->taps; j < (b + 1) * y->taps; j++) {
                    const double weight = x->weight[i] * y->weight[j];
                    if (weight != 0)
                        add_scaled<T>(result + (x->index[i] * r->size[1] + y->index[j]) * width, buffer,
                                         (T)weight, width, 0);
                }
        }
}
