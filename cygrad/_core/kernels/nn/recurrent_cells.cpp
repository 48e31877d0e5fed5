// The loops of recurrent cells for the SIMD target of this processor.

#include "kernels/nn/recurrent_cells.h"

#define LOOPS "kernels/nn/recurrent_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(lstm_begin, lstm_begin);
LOOP_TABLE(lstm_cell, lstm_cell);
LOOP_TABLE(lstm_hidden, lstm_hidden);
LOOP_TABLE(lstm_backward, lstm_backward);
LOOP_TABLE(gru_begin, gru_begin);
LOOP_TABLE(gru_hidden, gru_hidden);
LOOP_TABLE(gru_backward, gru_backward);
