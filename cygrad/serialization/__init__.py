"""
Saving and loading tensors, state dicts and other objects.

There are two formats: cygrad's own (`native`), and PyTorch's (`torch_reader`, `torch_writer`). By default `load` runs
no code from a file, so that untrusted files are safe.
"""

import contextlib
import io
import pickle
import struct
import zipfile

from cygrad._core import public_dir as _public_dir
from cygrad._core.arrays.dtype import library_name
from cygrad.serialization import native
from cygrad.serialization.files import Archive, replacing
from cygrad.serialization.unpickling import SAFE

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

# Exceptions that damaged files cause in the modules that read them.
DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, IndexError, ValueError, TypeError, EOFError,
          OverflowError, NotImplementedError, RecursionError, AttributeError, RuntimeError, struct.error)


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, *, format=None,
         pickle=None):
    """
    Write tensors, or containers of them, to a file.

    Tensors that share memory still do so after loading, and one that occurs twice is one object again. Gradients and
    the graph are not saved; whether a tensor requires grad is. A file at a path is replaced when the new one is
    complete and on the disk; until then, and after an error, the old one stays.

    Parameters
    ----------
    obj : object
        Tensors, parameters, NumPy arrays, numbers, strings, bytes, None, dtypes; lists, tuples, sets, dicts,
        OrderedDicts and Counters of such, for example a ``state_dict()``.
    f : str, path or binary file
    pickle_module, pickle_protocol, _use_new_zipfile_serialization : optional
        Accepted for programs that pass them.
    format : {"cygrad", "torch"}, optional
        "torch" is a file that ``torch.load(weights_only=True)`` reads, and `load` as well. It takes no NumPy arrays and
        frozensets, and keeps the whole memory that a tensor is a part of. The default is "cygrad".
    pickle : bool, optional
        Any other picklable object, too, for example a whole module, in the format "torch". Such a file holds names of
        classes and functions; to load it means to run code, so only ``load(f, weights_only=False)`` does. The default
        is False; where cygrad stands in for PyTorch and no `format` is given, it is True.

    Raises
    ------
    TypeError
        If something inside cannot be saved; it is named by its place.

    See Also
    --------
    load

    Examples
    --------
    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weight": cygrad.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not isinstance(f, (str, bytes)) and not hasattr(f, "__fspath__") and not hasattr(f, "write"):
        raise TypeError(f"save: expected a path or a file (got {type(f).__name__}).")
    if pickle is None:
        pickle = format is None and library_name() == "torch"
    if format not in ("cygrad", "torch", None) or (pickle and format == "cygrad"):
        raise ValueError(f"save: unknown format (got {format!r} with pickle={pickle!r}, expected 'cygrad' or 'torch', "
                         "and pickle=True only with 'torch').")
    if pickle or format == "torch":
        from cygrad.serialization.torch_writer import prepared
        write = prepared(obj, pickle)
    else:
        write = native.prepared(obj)
    with replacing(f) as file, zipfile.ZipFile(file, "w") as archive:
        write(archive)


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """
    Read a file that `save` or ``torch.save`` wrote, including the format before PyTorch 1.6.

    Of PyTorch's files tensors, storages, containers, numbers, dtypes and NumPy arrays are read.

    Parameters
    ----------
    f : str, path or binary file
    map_location : optional
        Accepted for programs that pass it: all memory is the CPU's.
    pickle_module : optional
        Accepted.
    weights_only : bool, default True
        False reads other objects, too, for example whole modules. **The file can then run any code**: use it for
        files of your own only.
    mmap : bool, optional
        Accepted.
    **pickle_load_args
        ``encoding``: accepted.

    Returns
    -------
    object

    Raises
    ------
    RuntimeError
        If the file was written by neither, is damaged, or needs code to be run; also a ``pickle.UnpicklingError``.

    See Also
    --------
    save

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weights": cygrad.ones(2)}, file)
    >>> file.seek(0)
    0
    >>> cygrad.load(file)
    {'weights': tensor([1., 1.])}
    """
    with contextlib.ExitStack() as stack:
        if isinstance(f, (str, bytes)) or hasattr(f, "__fspath__"):
            f = stack.enter_context(open(f, "rb"))
        elif not all(hasattr(f, method) for method in ("seek", "tell", "readinto", "readline")):
            if not hasattr(f, "read"):
                raise TypeError(f"load: expected a path or a file (got {type(f).__name__}).")
            f = io.BytesIO(f.read())
        runs_code = False
        try:
            start = f.tell()
            is_archive = f.read(2) == b"PK"
            f.seek(start)
            archive = stack.enter_context(Archive(f)) if is_archive else None
            if archive is not None and native.STRUCTURE in archive:
                return native.read(archive)
            from cygrad.serialization import torch_reader
            runs_code = not weights_only
            return torch_reader.read(archive, f, weights_only)
        except DAMAGE as error:
            if runs_code:                          # errors of its classes are the caller's
                raise
            raise LoadError("load: weights only load failed: this is no file of cygrad.save or torch.save, or it is "
                            f"damaged (got {type(error).__name__}: {error}).") from error


class LoadError(RuntimeError, pickle.UnpicklingError, EOFError):
    """A file that cannot be read; programs catch one of the three classes that PyTorch raises for it."""


def add_safe_globals(safe_globals):
    """
    Allow `load` to create objects of further classes, and to call further functions, that files name.

    Parameters
    ----------
    safe_globals : list of classes and functions
        Or of pairs (class or function, its name in files as ``"module.name"``).

    Examples
    --------
    >>> import cygrad, io
    >>> from fractions import Fraction
    >>> file = io.BytesIO()
    >>> cygrad.save(Fraction(1, 3), file, pickle=True)
    >>> _ = file.seek(0)
    >>> with cygrad.serialization.safe_globals([Fraction]):
    ...     cygrad.load(file)
    Fraction(1, 3)
    """
    for entry in safe_globals:
        found, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        SAFE[name] = found


def get_safe_globals():
    """
    Return the classes and functions of `add_safe_globals`.

    Examples
    --------
    >>> cygrad.serialization.get_safe_globals()
    []
    """
    return list(SAFE.values())


def clear_safe_globals():
    """
    Remove all classes and functions of `add_safe_globals`.

    Examples
    --------
    >>> cygrad.serialization.clear_safe_globals()
    """
    SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals):
    """
    Apply `add_safe_globals` inside a ``with`` block.

    Parameters
    ----------
    safe_globals : list of classes and functions

    Examples
    --------
    >>> from fractions import Fraction
    >>> with cygrad.serialization.safe_globals([Fraction]):
    ...     print(cygrad.serialization.get_safe_globals() == [Fraction])
    True
    """
    before = dict(SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        SAFE.clear()
        SAFE.update(before)

__dir__ = _public_dir(__name__)
