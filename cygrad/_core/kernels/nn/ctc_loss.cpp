// The loops of CTC loss for the SIMD target of this processor.

#include "kernels/nn/ctc_loss.h"

#define LOOPS "kernels/nn/ctc_loss_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(alignment_scores, alignment_scores);
const recurrence_t alignment_recurrences[2][2] = {FOR_FLOAT_AND_DOUBLE(recurrence_t, alignment_forward),
                                                  FOR_FLOAT_AND_DOUBLE(recurrence_t, alignment_reverse)};
