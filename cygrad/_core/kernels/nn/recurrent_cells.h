/* Gates of recurrent cells for float32 (double_precision = 0) and float64, dispatched on the SIMD target. */
#ifndef CYGRAD_RECURRENT_CELLS_H
#define CYGRAD_RECURRENT_CELLS_H

#define LOOPS "kernels/nn/recurrent_loops.h"
#include "simd/targets.h"
#undef LOOPS

/* Define a function that dispatches to the loop of its name. */
#define CHOOSE(name, parameters, ...)                                           \
    static inline void name(int double_precision, PARAMETERS parameters) {      \
        typedef void (*loop_t) parameters;                                      \
        static const loop_t loops[SIMD_TARGETS][2] = SIMD_VARIANTS(name);                    \
        loops[simd_target()][double_precision](__VA_ARGS__);                \
    }
#define PARAMETERS(...) __VA_ARGS__

CHOOSE(lstm_begin, (const void *gates, void *activations, int64_t rows, int64_t n, int64_t step),
       gates, activations, rows, n, step)
CHOOSE(lstm_cell, (void *activations, const void *cell, void *next, int64_t size, int64_t step),
       activations, cell, next, size, step)
CHOOSE(lstm_hidden, (const void *activations, void *hidden, int64_t size, int64_t step),
       activations, hidden, size, step)
CHOOSE(lstm_backward, (const void *activations, const void *cell, const void *grad_hidden, const void *grad_cell,
                       void *result, int64_t rows, int64_t n, int64_t step),
       activations, cell, grad_hidden, grad_cell, result, rows, n, step)
CHOOSE(gru_begin, (const void *gates, const void *hidden_gates, void *activations, int64_t rows, int64_t n,
                   int64_t step),
       gates, hidden_gates, activations, rows, n, step)
CHOOSE(gru_hidden, (const void *activations, const void *hidden, void *next, int64_t size, int64_t step),
       activations, hidden, next, size, step)
CHOOSE(gru_backward, (const void *activations, const void *hidden_gates, const void *hidden, const void *grad,
                      void *result, int64_t rows, int64_t n, int64_t step, int of_hidden),
       activations, hidden_gates, hidden, grad, result, rows, n, step, of_hidden)
#undef CHOOSE
#undef PARAMETERS

#endif
