/* Gates of recurrent cells, for rows of n units; see recurrent_cells.h.

   A row of logits has a block of n per gate; activations have a block of all rows per gate, `step` elements apart. The
   tanh primitive is called between these loops. Outputs do not overlap inputs. */
#include "simd/vector_functions.h"

/* Compute input, forget and output gate, and the argument of the candidate's tanh, from logits. */
template <class T> static void lstm_begin(const T *gates, T *a, int64_t rows, int64_t n, int64_t step) {
    for (int64_t row = 0; row < rows; row++, gates += 4 * n, a += n) {
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            a[k] = sigmoid<T>(gates[k]);
            a[step + k] = sigmoid<T>(gates[n + k]);
            a[2 * step + k] = gates[2 * n + k];
            a[3 * step + k] = sigmoid<T>(gates[3 * n + k]);
        }
    }
}

/* Compute the new cell, and copy it for tanh. */
template <class T> static void lstm_cell(T *a, const T *cell, T *next, int64_t size, int64_t step) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++)
        a[4 * step + k] = next[k] = a[step + k] * cell[k] + a[k] * a[2 * step + k];
}

template <class T> static void lstm_hidden(const T *a, T *hidden, int64_t size, int64_t step) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++)
        hidden[k] = a[3 * step + k] * a[4 * step + k];
}

/* Compute the gradient of the four logits. */
template <class T> static void lstm_backward(const T *a, const T *cell, const T *grad_hidden, const T *grad_cell,
                                             T *result, int64_t rows, int64_t n, int64_t step) {
    for (int64_t row = 0; row < rows; row++, a += n, cell += n, grad_hidden += n, grad_cell += n, result += 4 * n) {
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            const T i = a[k], f = a[step + k], g = a[2 * step + k], o = a[3 * step + k], t = a[4 * step + k];
            const T total = grad_cell[k] + grad_hidden[k] * o * (1 - t * t);
            result[k] = total * g * i * (1 - i);
            result[n + k] = total * cell[k] * f * (1 - f);
            result[2 * n + k] = total * i * (1 - g * g);
            result[3 * n + k] = grad_hidden[k] * t * o * (1 - o);
        }
    }
}

/* Compute reset and update gate, and the argument of the candidate's tanh, from logits. */
template <class T> static void gru_begin(const T *gates, const T *hidden_gates, T *a, int64_t rows, int64_t n,
                                         int64_t step) {
    for (int64_t row = 0; row < rows; row++, gates += 3 * n, hidden_gates += 3 * n, a += n) {
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            const T reset = sigmoid<T>(gates[k] + hidden_gates[k]);
            a[k] = reset;
            a[step + k] = sigmoid<T>(gates[n + k] + hidden_gates[n + k]);
            a[2 * step + k] = gates[2 * n + k] + reset * hidden_gates[2 * n + k];
        }
    }
}

template <class T> static void gru_hidden(const T *a, const T *hidden, T *next, int64_t size, int64_t step) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++)
        next[k] = a[2 * step + k] + a[step + k] * (hidden[k] - a[2 * step + k]);
}

/* Compute the gradient of the three logits of the input, or of the hidden state. */
template <class T> static void gru_backward(const T *a, const T *hidden_gates, const T *hidden, const T *grad,
                                            T *result, int64_t rows, int64_t n, int64_t step, int of_hidden) {
    for (int64_t row = 0; row < rows; row++, a += n, hidden_gates += 3 * n, hidden += n, grad += n, result += 3 * n) {
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            const T r = a[k], z = a[step + k], c = a[2 * step + k];
            const T candidate = grad[k] * (1 - z) * (1 - c * c);
            result[k] = candidate * hidden_gates[2 * n + k] * r * (1 - r);
            result[n + k] = grad[k] * (hidden[k] - c) * z * (1 - z);
            result[2 * n + k] = of_hidden ? candidate * r : candidate;
        }
    }
}
