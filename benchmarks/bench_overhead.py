"""Per-operation overhead: 2,000 products of tensors of four elements, in each mode."""

from . import suite


class Operations(suite._Scenarios):
    """All 2,000 of them."""

    params = suite.over("op-recorded", "op-backward", "op-no-grad", "op-inference")
