/* Gates of recurrent cells, for float32 and float64. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

EXPORTED void (*const lstm_begin[2])(const void *gates, void *activations, int64_t rows, int64_t n, int64_t step);
EXPORTED void (*const lstm_cell[2])(void *activations, const void *cell, void *next, int64_t size, int64_t step);
EXPORTED void (*const lstm_hidden[2])(const void *activations, void *hidden, int64_t size, int64_t step);
EXPORTED void (*const lstm_backward[2])(const void *activations, const void *cell, const void *grad_hidden,
                                        const void *grad_cell, void *result, int64_t rows, int64_t n, int64_t step);
EXPORTED void (*const gru_begin[2])(const void *gates, const void *hidden_gates, void *activations, int64_t rows,
                                    int64_t n, int64_t step);
EXPORTED void (*const gru_hidden[2])(const void *activations, const void *hidden, void *next, int64_t size,
                                     int64_t step);
EXPORTED void (*const gru_backward[2])(const void *activations, const void *hidden_gates, const void *hidden,
                                       const void *grad, void *result, int64_t rows, int64_t n, int64_t step,
                                       int of_hidden);
