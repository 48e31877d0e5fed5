"""``hub``: models defined in the ``hubconf.py`` of a folder. Nothing is downloaded."""

import importlib.util
import os
import re
import sys
from urllib.parse import urlparse

import cygrad

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")             # in names of files
_settings = {"folder": None}


def _get_torch_home():
    """Return the folder of files."""
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")))


def get_dir():
    """Return the folder of models."""
    return _settings["folder"] or os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Set the folder of models."""
    _settings["folder"] = os.path.expanduser(str(d))


def _refuse(what):
    raise RuntimeError(f"hub: downloads are not supported (got {what}). Put the files into a folder and use "
                       "source='local', or load them with load().")


def _description(operation, repo_or_dir, source):
    """Return the module ``hubconf`` of a folder."""
    folder = os.path.expanduser(str(repo_or_dir))
    if source != "local":
        owner_and_name, _, branch = str(repo_or_dir).partition(":")
        found = os.path.join(get_dir(), f"{owner_and_name.replace('/', '_')}_{branch or 'main'}")
        folder = found if os.path.isdir(found) else _refuse(repo_or_dir)
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{operation}: no hubconf.py in {folder}.")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    for name in getattr(module, "dependencies", ()):
        if importlib.util.find_spec(name) is None:
            raise RuntimeError(f"{operation}: {path} needs the package {name}, which is not installed.")
    return module


def _entry(operation, module, model):
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"{operation}: no function {model!r} in {module.__file__}.")
    return function


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True,
         skip_validation=False, **kwargs):
    """
    Call a function of the ``hubconf.py`` of a folder.

    Parameters
    ----------
    repo_or_dir : str
        The folder; or a repository with files in `get_dir`.
    model : str
        The function.
    *args, **kwargs
        For the function.
    source : {"github", "local"}
    trust_repo, force_reload, verbose, skip_validation : optional
        Ignored.

    Raises
    ------
    RuntimeError
        If a download would be necessary.
    """
    return _entry("hub.load", _description("hub.load", repo_or_dir, source), model)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True, source=None):
    """Return the functions of a folder's ``hubconf.py``."""
    source = source or ("local" if os.path.isdir(github) else "github")
    module = _description("hub.list", github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None, source=None):
    """Return the docstring of a function of a folder's ``hubconf.py``."""
    source = source or ("local" if os.path.isdir(github) else "github")
    return _entry("hub.help", _description("hub.help", github, source), model).__doc__


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Refuse: nothing is downloaded."""
    _refuse(url)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None,
                             weights_only=True):
    """
    Load a file of parameters from the download folder, or from a file URL.

    Parameters
    ----------
    url : str
    model_dir : str, optional
        Default: ``checkpoints`` below `get_dir`.
    map_location, weights_only : optional
        See `load`.
    file_name : str, optional
        Default: the last part of the address.
    progress, check_hash : optional
        Ignored.
    """
    parts = urlparse(url)
    name = file_name or os.path.basename(parts.path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        path = parts.path if parts.scheme == "file" else _refuse(url)
    return cygrad.load(path, map_location=map_location, weights_only=weights_only)


def __getattr__(name):
    if name == "tqdm":                            # programs import the progress bar from here
        from tqdm.auto import tqdm
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


load_url = load_state_dict_from_url
