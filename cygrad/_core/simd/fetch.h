/* Prefetch memory that will be read or written soon. Addresses after its end do no harm. */
#ifndef CYGRAD_FETCH_H
#define CYGRAD_FETCH_H

#include <stdint.h>

static inline void fetch(const char *memory, int64_t nbytes, int written) {
#if defined(__GNUC__)
    for (int64_t at = 0; at < nbytes; at += 64) {
        if (written)
            __builtin_prefetch(memory + at, 1, 2);
        else
            __builtin_prefetch(memory + at, 0, 2);
    }
#endif
}

#endif
