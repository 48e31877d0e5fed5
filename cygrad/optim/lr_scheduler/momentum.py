"""Cycling of momentum by schedulers."""

from cygrad.optim.lr_scheduler.base import one_for_each_group

__all__ = ["Momentum"]


class Momentum:
    """Mixin of schedulers that set ``momentum``, or the first of ``betas``."""

    def _begin_momentum(self, optimizer, lowest, highest, start):
        """Check and return the bounds; if `start`, set the maximum."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("CyclicLR, OneCycleLR: cycle_momentum=True requires an optimizer with momentum or betas "
                             f"(got {type(optimizer).__name__}).")
        self.use_beta1 = "betas" in optimizer.defaults
        lowest = one_for_each_group(self, "base_momentum", optimizer, lowest)
        highest = one_for_each_group(self, "max_momentum", optimizer, highest)
        if start:
            for low, high, group in zip(lowest, highest, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lowest, highest

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value
