"""Batch normalization over the batches of all ranks."""

import cygrad
from cygrad import distributed
from cygrad.nn import functional as F
from cygrad.nn.normalization import _BatchNorm

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """
    Normalize each channel over the batches of all ranks of a group.

    Training uses one collective in forward and one in backward. In evaluation, and with a single rank, it is ordinary
    batch normalization. Batches may have different sizes.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps, momentum, affine, track_running_stats, device, dtype : optional
        As for `BatchNorm1d`.
    process_group : ProcessGroup, optional
        The default group if None.

    Examples
    --------
    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    >>> nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
    SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
                 device=None, dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.ndim < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2D input (got {input.ndim}D input).")

    def forward(self, input):
        if not (self.training and distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1):
            return super().forward(input)
        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise RuntimeError(f"SyncBatchNorm: expected {self.num_features} channels (got shape "
                               f"{tuple(input.shape)}).")
        mean, variance, count = self._statistics(input)
        if self.training and self.track_running_stats:
            self._move(mean.detach(), variance.detach() * (count / max(count - 1, 1)))
        # Subtract the mean first: a large mean would cancel the digits of small deviations.
        centered = input - mean.reshape(1, -1, *[1] * (input.ndim - 2))
        return F.batch_norm(centered, cygrad.zeros_like(mean), variance, self.weight, self.bias, False, 0.0, self.eps)

    def _statistics(self, input):
        """Return mean and variance of each channel over all ranks, and the number of values."""
        channels = input.shape[1]
        rows = input.transpose(0, 1).reshape(channels, -1)
        n = rows.shape[1]
        mean = rows.mean(1) if n else rows.sum(1)
        squares = (rows - mean.unsqueeze(1)).square().sum(1)
        own = cygrad.cat([mean, squares, cygrad.full((1,), n, dtype=rows.dtype)])
        all_means, all_squares, counts = cygrad.stack(distributed.nn.all_gather(own, self.process_group)).split(
            [channels, channels, 1], 1)
        counts = counts.detach()
        total = counts.sum()
        if total.item() < 2:
            raise ValueError("SyncBatchNorm: Expected more than 1 value per channel when training (got "
                             f"{int(total.item())} on all ranks).")
        shares = counts / total
        mean = (all_means * shares).sum(0)
        variance = all_squares.sum(0) / total + ((all_means - mean).square() * shares).sum(0)
        return mean, variance, total.item()

    def _move(self, mean, variance):
        """Update the running statistics."""
        with cygrad.no_grad():
            self.num_batches_tracked.add_(1)
            weight = 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
            for running, batch in ((self.running_mean, mean), (self.running_var, variance)):
                running.mul_(1 - weight).add_(batch.to(running.dtype) * weight)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """
        Replace all batch normalization in a model by SyncBatchNorm; parameters and statistics stay.

        Parameters
        ----------
        module : Module
        process_group : ProcessGroup, optional

        Returns
        -------
        Module
        """
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                       process_group, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
            return made
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module
