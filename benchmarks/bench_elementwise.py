"""Element-wise chains: forward and backward of ``(((a*b).tanh()+a).exp()).sum()``."""

from . import suite


class ElementwiseChain(suite._Scenarios):
    """Sizes from the L1 cache to main memory."""

    params = suite.over("chain-1e3", "chain-1e4", "chain-1e5", "chain-1e6", "chain-1e7")
