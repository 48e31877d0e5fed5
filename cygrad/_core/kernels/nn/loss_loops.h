/* Losses of samples and their gradients; see losses.pyx. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum { LOSS_TILE = 256 };              /* contiguous samples processed together */

/* Class c of sample (o, k) is at (o * n + c) * inner + k. */
typedef struct {
    int dtype;                         /* float32 or float64: of all but the targets */
    int each;                          /* the loss is not reduced: each sample has a gradient */
    int through_softmax;               /* compute the gradient of the logits */
    int64_t n, inner;                  /* classes, samples of an image */
    int64_t ignore;
    double smoothing;
    double scale;                      /* of each sample's gradient */
    const int64_t *targets;
    const void *input, *weight;        /* log probabilities; weights of classes, or NULL */
    const void *grad;
    void *losses, *weights;            /* of samples */
    void *out;                         /* gradient of the input */
    double (*row_sum)(int dtype, const char *data, int64_t n);
} samples_t;

/* Bodies of parallel loops; `context` is a samples_t. */
/* Compute losses and weights of samples begin..end-1. */
EXPORTED void sample_losses(void *context, int64_t begin, int64_t end);
/* Compute the gradients of tiles begin..end-1 of samples, so that memory is read in order. */
EXPORTED void sample_gradients(void *context, int64_t begin, int64_t end);
