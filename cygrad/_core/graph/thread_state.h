/* The state of a thread; every field is zero in a new thread. */
#ifndef CYGRAD_THREAD_STATE_H
#define CYGRAD_THREAD_STATE_H

#include <stdint.h>

enum { USER_MODE, PROFILER_MODE, AUTOCAST_MODE, PRECOMPUTED_MODE, FORWARD_MODE, TRACING_MODE, MODES };

typedef struct {
    uint32_t modes;
    int32_t grad_disabled;
    int32_t inference;
    int32_t reports_grad;
    int32_t depth;
    int32_t draining;
    int32_t guarded;
    int32_t anomaly;
    int32_t dual_level;
    void *saved_hooks;
    void *mode_objects[MODES];
} thread_state_t;

#endif
