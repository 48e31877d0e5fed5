/* Gates of recurrent cells, some rows of n units, for one type. The includer defines REAL and NAME(function).

   A row of logits is one block of n for each gate; activations are one block of all rows for each gate, `step` elements
   apart. Exponentials are taken between these loops, by the primitives: a sigmoid comes in as exp(-x). */

/* Logits -> what the exponential of the logistic gates and tanh of the candidate are taken of. */
FOR_EACH_CPU
static void NAME(lstm_begin)(const void *gates_of, void *activations_of, int64_t rows, int64_t n, int64_t step) {
    const REAL *gates = gates_of;
    REAL *a = activations_of;
    for (int64_t row = 0; row < rows; row++, gates += 4 * n, a += n)
        for (int64_t k = 0; k < n; k++) {
            a[k] = -gates[k];
            a[step + k] = -gates[n + k];
            a[2 * step + k] = gates[2 * n + k];
            a[3 * step + k] = -gates[3 * n + k];
        }
}

/* Input, forget and output gate from their exponentials, the new cell, and a copy of it for tanh. */
FOR_EACH_CPU
static void NAME(lstm_cell)(void *activations_of, const void *cell_of, void *next_of, int64_t size, int64_t step) {
    REAL *a = activations_of, *next = next_of;
    const REAL *cell = cell_of;
    for (int64_t k = 0; k < size; k++) {
        const REAL input = 1 / (1 + a[k]), forget = 1 / (1 + a[step + k]), output = 1 / (1 + a[3 * step + k]);
        a[k] = input;
        a[step + k] = forget;
        a[3 * step + k] = output;
        a[4 * step + k] = next[k] = forget * cell[k] + input * a[2 * step + k];
    }
}

FOR_EACH_CPU
static void NAME(lstm_hidden)(const void *activations_of, void *hidden_of, int64_t size, int64_t step) {
    const REAL *a = activations_of;
    REAL *hidden = hidden_of;
    for (int64_t k = 0; k < size; k++)
        hidden[k] = a[3 * step + k] * a[4 * step + k];
}

/* Gradient of the four logits. */
FOR_EACH_CPU
static void NAME(lstm_backward)(const void *activations_of, const void *cell_of, const void *grad_hidden_of,
                                const void *grad_cell_of, void *result_of, int64_t rows, int64_t n, int64_t step) {
    const REAL *a = activations_of, *cell = cell_of, *grad_hidden = grad_hidden_of, *grad_cell = grad_cell_of;
    REAL *result = result_of;
    for (int64_t row = 0; row < rows; row++, a += n, cell += n, grad_hidden += n, grad_cell += n, result += 4 * n)
        for (int64_t k = 0; k < n; k++) {
            const REAL i = a[k], f = a[step + k], g = a[2 * step + k], o = a[3 * step + k], t = a[4 * step + k];
            const REAL total = grad_cell[k] + grad_hidden[k] * o * (1 - t * t);
            result[k] = total * g * i * (1 - i);
            result[n + k] = total * cell[k] * f * (1 - f);
            result[2 * n + k] = total * i * (1 - g * g);
            result[3 * n + k] = grad_hidden[k] * t * o * (1 - o);
        }
}

/* What the exponential of the reset and update gate is taken of. */
FOR_EACH_CPU
static void NAME(gru_begin)(const void *gates_of, const void *hidden_gates_of, void *activations_of, int64_t rows,
                            int64_t n, int64_t step) {
    const REAL *gates = gates_of, *hidden_gates = hidden_gates_of;
    REAL *a = activations_of;
    for (int64_t row = 0; row < rows; row++, gates += 3 * n, hidden_gates += 3 * n, a += n)
        for (int64_t k = 0; k < n; k++) {
            a[k] = -(gates[k] + hidden_gates[k]);
            a[step + k] = -(gates[n + k] + hidden_gates[n + k]);
        }
}

/* The two gates from their exponentials, and what tanh of the candidate is taken of. */
FOR_EACH_CPU
static void NAME(gru_candidate)(const void *gates_of, const void *hidden_gates_of, void *activations_of, int64_t rows,
                                int64_t n, int64_t step) {
    const REAL *gates = gates_of, *hidden_gates = hidden_gates_of;
    REAL *a = activations_of;
    for (int64_t row = 0; row < rows; row++, gates += 3 * n, hidden_gates += 3 * n, a += n)
        for (int64_t k = 0; k < n; k++) {
            const REAL reset = 1 / (1 + a[k]);
            a[k] = reset;
            a[step + k] = 1 / (1 + a[step + k]);
            a[2 * step + k] = gates[2 * n + k] + reset * hidden_gates[2 * n + k];
        }
}

FOR_EACH_CPU
static void NAME(gru_hidden)(const void *activations_of, const void *hidden_of, void *next_of, int64_t size,
                             int64_t step) {
    const REAL *a = activations_of, *hidden = hidden_of;
    REAL *next = next_of;
    for (int64_t k = 0; k < size; k++)
        next[k] = a[2 * step + k] + a[step + k] * (hidden[k] - a[2 * step + k]);
}

/* Gradient of the three logits that come from the input, or of those that come from the hidden state. */
FOR_EACH_CPU
static void NAME(gru_backward)(const void *activations_of, const void *hidden_gates_of, const void *hidden_of,
                               const void *grad_of, void *result_of, int64_t rows, int64_t n, int64_t step,
                               int of_hidden) {
    const REAL *a = activations_of, *hidden_gates = hidden_gates_of, *hidden = hidden_of, *grad = grad_of;
    REAL *result = result_of;
    for (int64_t row = 0; row < rows; row++, a += n, hidden_gates += 3 * n, hidden += n, grad += n, result += 3 * n)
        for (int64_t k = 0; k < n; k++) {
            const REAL r = a[k], z = a[step + k], c = a[2 * step + k];
            const REAL candidate = grad[k] * (1 - z) * (1 - c * c);
            result[k] = candidate * hidden_gates[2 * n + k] * r * (1 - r);
            result[n + k] = grad[k] * (hidden[k] - c) * z * (1 - z);
            result[2 * n + k] = of_hidden ? candidate * r : candidate;
        }
}
