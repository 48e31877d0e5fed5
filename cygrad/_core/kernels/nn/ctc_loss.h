/* Scores and recurrences of CTC alignments, for float32 and float64. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

EXPORTED void (*const alignment_scores[2])(const void *shares, const uint8_t *skip, void *scores, int64_t steps,
                                           int64_t all, int64_t row, int64_t n);
typedef void (*recurrence_t)(const void *values, const void *scores, const void *shares, const uint8_t *skip, void *out,
                             int64_t steps, int64_t all, int64_t row, int64_t n);
EXPORTED const recurrence_t alignment_recurrences[2][2];         /* forward and reverse */
