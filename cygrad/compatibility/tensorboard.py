"""``utils.tensorboard``: a SummaryWriter over the tensorboard package."""

import time

import numpy as np

import cygrad

__all__ = ["FileWriter", "SummaryWriter"]


def _package():
    """Import the writers of the tensorboard package."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise ImportError("SummaryWriter: the package tensorboard is not installed. Install it with pip install "
                          "tensorboard, or print what you want to see.") from None
    return Event, Summary, SummaryMetadata, HistogramProto, TensorProto, EventFileWriter


def _numbers(values):
    return np.asarray(values.detach().numpy() if isinstance(values, cygrad.Tensor) else values)


def _number(value):
    """Return a number, or the one in an array or tensor of one element."""
    array = _numbers(value)
    if array.size != 1:
        raise ValueError(f"add_scalar: the value must have one element (got shape {array.shape}). Reduce it first, or "
                         "use add_histogram.")
    return float(array.reshape(()))


class SummaryWriter:
    """
    Write numbers, histograms and texts for TensorBoard.

    Parameters
    ----------
    log_dir : str, optional
        Default: ``runs/`` and the time.
    comment : str, optional
        Appended to the file name, after the time.
    purge_step, max_queue, flush_secs, filename_suffix : optional
        As in PyTorch.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        self._proto = _package()
        self.log_dir = str(log_dir) if log_dir else f"runs/{time.strftime('%b%d_%H-%M-%S')}{comment}"
        self._options = (max_queue, flush_secs, filename_suffix)
        self._files = {}
        self._write(self.log_dir)

    def _write(self, directory, step=None, walltime=None, *values):
        event, summary, *_, writer = self._proto
        if directory not in self._files:
            self._files[directory] = writer(directory, *self._options)
        if values:
            self._files[directory].add_event(event(
                wall_time=time.time() if walltime is None else walltime, step=None if step is None else int(step),
                summary=summary(value=values)))

    def get_logdir(self):
        """Return the folder of the files."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """Write a number."""
        value = self._proto[1].Value(tag=tag, simple_value=_number(scalar_value))
        self._write(self.log_dir, global_step, walltime, value)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Write several numbers for one plot."""
        for tag, number in tag_scalar_dict.items():
            value = self._proto[1].Value(tag=main_tag, simple_value=_number(number))
            self._write(f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}", global_step, walltime, value)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """Write a histogram."""
        values = _numbers(values).astype(np.float64).ravel()
        if not values.size:
            raise ValueError("add_histogram: expected at least one value (got an empty tensor).")
        counts, edges = np.histogram(values, bins=64 if isinstance(bins, str) else bins)
        histogram = self._proto[3](
            min=values.min(), max=values.max(), num=values.size, sum=values.sum(), sum_squares=(values**2).sum(),
            bucket_limit=edges[1:].tolist(), bucket=counts.tolist())
        self._write(self.log_dir, global_step, walltime, self._proto[1].Value(tag=tag, histo=histogram))

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Write a text."""
        metadata = self._proto[2](plugin_data=self._proto[2].PluginData(plugin_name="text"))
        tensor = self._proto[4](dtype="DT_STRING", string_val=[text_string.encode()])
        self._write(self.log_dir, global_step, walltime,
                    self._proto[1].Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor))

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Write hyperparameters as text, and metrics as numbers."""
        self.add_text("hparams", "\n".join(f"{name}: {value}" for name, value in hparam_dict.items()), global_step)
        for name, value in metric_dict.items():
            self.add_scalar(name, value, global_step)

    def _refuse(self, *args, **options):
        raise NotImplementedError("SummaryWriter: pictures, sounds, graphs and embeddings are not written here. Write "
                                  "numbers, histograms and texts.")

    add_image = add_images = add_figure = add_video = add_audio = add_graph = add_embedding = add_mesh = _refuse
    add_pr_curve = add_custom_scalars = _refuse

    def flush(self):
        """Write pending events to disk."""
        for file in self._files.values():
            file.flush()

    def close(self):
        """Write pending events, and close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """Refuse: `SummaryWriter.add_hparams` writes a text and numbers."""
    raise NotImplementedError("hparams: hyperparameter summaries are not supported. Use SummaryWriter.add_hparams.")


def FileWriter(*args, **options):
    """Return the file writer of the tensorboard package."""
    return _package()[-1](*args, **options)
