// The loops of softmax for the SIMD target of this processor.

#include "kernels/reduction/softmax_rows.h"

#define LOOPS "kernels/reduction/softmax_loops.h"
#include "simd/dispatch.h"

#define ROWS_OF(function) FOR_FLOAT_AND_DOUBLE(softmax_rows_t, function##_rows)
#define COLUMNS_OF(function) FOR_FLOAT_AND_DOUBLE(softmax_columns_t, function##_columns)

const softmax_rows_t softmax_rows[4][2] = {ROWS_OF(softmax), ROWS_OF(log_softmax), ROWS_OF(softmax_backward),
                                           ROWS_OF(log_softmax_backward)};
const softmax_columns_t softmax_columns[4][2] = {COLUMNS_OF(softmax), COLUMNS_OF(log_softmax),
                                                 COLUMNS_OF(softmax_backward), COLUMNS_OF(log_softmax_backward)};
LOOP_TABLE(scaled_exponentials_of, scaled_exponentials);
LOOP_TABLE(attention_row, attention_row);
