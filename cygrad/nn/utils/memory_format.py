"""Memory format of convolution weights."""

from cygrad.nn.convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """
    Convert the weights of all 2D convolutions in a module to a memory format and return the module.

    Parameters
    ----------
    module : Module
    memory_format : memory_format

    Examples
    --------
    >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 3), cygrad.channels_last)
    >>> layer.weight.is_contiguous(memory_format=cygrad.channels_last)
    True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """
    Convert the weights of all 3D convolutions in a module to a memory format and return the module.

    Examples
    --------
    >>> layer = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(3, 4, 3), cygrad.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=cygrad.channels_last_3d)
    True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module, memory_format, kinds):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module
