/* Codes of the reductions. */
#ifndef CYGRAD_REDUCE_OPERATIONS_H
#define CYGRAD_REDUCE_OPERATIONS_H

typedef enum {
    SUM,
    NANSUM,             /* of real numbers */
    MEAN,
    PROD,
    MAXIMUM,
    MINIMUM,
    ANY,
    ALL,
    VARIANCE,           /* `parameter`: the correction */
    DEVIATION,
    NORM_0,
    NORM_1,
    NORM_2,
    NORM_P,             /* `parameter`: the order */
    NORM_MAX,
    NORM_MIN,
    ARGMAX,             /* two results: values (may be NULL) and indices */
    ARGMIN,
    LOGSUMEXP,
    OPERATIONS
} reduce_operation_t;

#endif
