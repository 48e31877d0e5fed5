/* Inner loops of primitives, as NumPy's: pointers to the inputs, then the output; the number of elements; steps in
 * bytes; the `data` of the entry. */
#pragma once

#include <stdint.h>

typedef void (*loop_t)(char **arguments, const int64_t *n, const int64_t *steps, void *data);

typedef struct {
    loop_t loop;               /* NULL: this primitive does not support the dtype */
    void *data;
    int32_t out_dtype;
} entry_t;
