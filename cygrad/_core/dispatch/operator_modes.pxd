"""Automatic mixed precision: operators whose operands `autocast` casts."""


# ------------------------------------------------------------------------------------------------------------- autocast

# Automatic mixed precision: operators whose operands `autocast` casts.

cdef enum:
    # Flags of operators, by the key `autocast` of their rows.
    LOWERS = 1 << 17      # cast operands to the dtype of the block
    WIDENS = 1 << 18      # cast operands to float32
    MEETS = 1 << 19       # cast operands to float32 if one of them has it, else to the dtype of the block
    AUTOCASTS = LOWERS | WIDENS | MEETS
