"""Learning rate schedulers; call their ``step()`` after that of the optimizer."""

from cygrad._core import public_dir as _public_dir
from cygrad.optim.lr_scheduler.base import LRScheduler
from cygrad.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from cygrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from cygrad.optim.lr_scheduler.cyclic import CyclicLR
from cygrad.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from cygrad.optim.lr_scheduler.one_cycle import OneCycleLR
from cygrad.optim.lr_scheduler.plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler             # deprecated name

__dir__ = _public_dir(__name__)
