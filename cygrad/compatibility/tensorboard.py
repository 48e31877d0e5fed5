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


def _pixels(values, formats):
    """Return pixels of shape (height, width, 3 or 4) for a picture, or for a batch in rows of eight."""
    if len(formats) != values.ndim or set(formats) - set("NCHW"):
        raise ValueError(f"add_image: dataformats must name each dimension of the picture by N, C, H or W (got "
                         f"{formats!r} for shape {values.shape}).")
    for missing in set("NCHW") - set(formats):
        values, formats = values[None], missing + formats
    values = np.einsum(f"{formats.lower()}->nhwc", values)
    if values.dtype != np.uint8:
        values = (values * 255.0).clip(0, 255).astype(np.uint8)
    if values.shape[-1] == 1:
        values = values.repeat(3, -1)
    count, height, width, channels = values.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, height, width, channels), np.uint8)
    grid[:count] = values
    return grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(
        rows * height, columns * width, channels)


class SummaryWriter:
    """
    Write numbers, histograms, pictures and texts for TensorBoard.

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

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """Write a picture; `dataformats` names its dimensions, of a batch with N."""
        import io

        from PIL import Image
        pixels = _pixels(_numbers(img_tensor), dataformats.upper())
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        height, width, channels = pixels.shape
        image = self._proto[1].Image(height=height, width=width, colorspace=channels,
                                     encoded_image_string=file.getvalue())
        self._write(self.log_dir, global_step, walltime, self._proto[1].Value(tag=tag, image=image))

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Write the pictures of a batch as one, eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """Write matplotlib figures, and close them by default."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        pictures = []
        for part in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(part)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(part)
        self.add_image(tag, np.stack(pictures), global_step, walltime, "NHWC")

    def _refuse(self, *args, **options):
        raise NotImplementedError("SummaryWriter: audio, graphs and embeddings are not supported. Write scalars, "
                                  "histograms, images and text.")

    add_video = add_audio = add_graph = add_embedding = add_mesh = add_pr_curve = add_custom_scalars = _refuse

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
