"""Files written by version 0.1.0 load."""

import pickle
from pathlib import Path

import pytest

import cygrad
from cygrad import nn, optim

FILES = Path(__file__).parent / "data" / "version_0_1"
KINDS = {
    "tensor": cygrad.Tensor, "dtype": cygrad.dtype, "parameter": nn.Parameter, "module": nn.Sequential,
    "optimizer": optim.Adam, "scheduler": optim.lr_scheduler.StepLR,
}


@pytest.mark.parametrize("name", KINDS)
def test_pickles_load(name):
    assert isinstance(pickle.loads((FILES / f"{name}.pkl").read_bytes()), KINDS[name])


def test_a_module_computes():
    model = pickle.loads((FILES / "module.pkl").read_bytes())
    assert model(cygrad.ones(4, 2)).shape == (4, 3)


def test_saved_files_load():
    state = cygrad.load(FILES / "state.cygrad")["m"]
    nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).load_state_dict(state)


@pytest.mark.parametrize(("place", "found"), [
    ("composite.differences diff", cygrad.diff), ("composite.numbers ldexp", cygrad.ldexp),
    ("composite.placing index_copy", cygrad.index_copy), ("composite.questions is_nonzero", cygrad.is_nonzero),
    ("composite.turning rot90", cygrad.rot90), ("fft.lines rfft", cygrad.fft.rfft),
    ("fft.planes fft2", cygrad.fft.fft2), ("fft.blocks ifftn", cygrad.fft.ifftn), ("fft.frames istft", cygrad.istft),
    ("fft.frequencies fftshift", cygrad.fft.fftshift), ("nn.distance Bilinear", nn.Bilinear),
    ("nn.layers Dropout", nn.Dropout), ("nn.margin_loss CTCLoss", nn.CTCLoss),
    ("nn.margin_loss PoissonNLLLoss", nn.PoissonNLLLoss), ("nn.resampling AlphaDropout", nn.AlphaDropout),
    ("nn.resampling Unflatten", nn.Unflatten)])
def test_functions_and_classes_are_found_where_they_were(place, found):
    module, name = place.split()
    assert pickle.loads(f"ccygrad.{module}\n{name}\n.".encode()) is found
