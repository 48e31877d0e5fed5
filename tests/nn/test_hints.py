"""Errors of frequent mistakes with modules, losses and optimizers suggest the correction."""

import sys

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.func import vmap

X = cygrad.ones(2, 3)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: optim.SGD(nn.Linear(1, 1), lr=0.1), TypeError, r"^SGD: params .*\(got a Linear\).*parameters\(\)"),
    (lambda: optim.Adam(p for p in ()), ValueError, r"^Adam: optimizer got an empty parameter list\. An iterator"),
    (lambda: optim.Adam([]), ValueError, r"^Adam: optimizer got an empty parameter list\.$"),
    (lambda: nn.Sequential([nn.ReLU()]), TypeError, r"^Sequential: .*\(got a list .* Sequential\(\*modules\)"),
    (lambda: nn.Sequential(nn.ReLU), TypeError, r"^Sequential: .*the class ReLU.* Write ReLU\(\)"),
    (lambda: nn.MSELoss(X, X), TypeError, r"^MSELoss: .*options, not data.*MSELoss\(\)\(input, \.\.\.\)"),
    (lambda: nn.ReLU(X), TypeError, r"^ReLU: .*options, not data \(got a Tensor for 'inplace'\)"),
    (lambda: nn.ModuleList([nn.ReLU()])(X), NotImplementedError, r"\[ModuleList\] is missing the .*Sequential"),
    (lambda: nn.BatchNorm1d(3)(X[:1]), ValueError, r"^batch_norm: Expected more than 1 value per channel"),
    (lambda: nn.Linear(1, 1).to("mps"), RuntimeError, r"^to: no such device \(got 'mps'.*backends\.mps\.is_available"),
    (lambda: cygrad.device("gpu"), RuntimeError, r"^device: no such type \(got 'gpu', GPUs are named cuda\)"),
    (lambda: cygrad.zeroes(3), AttributeError, r"no attribute 'zeroes'\. Did you mean 'zeros'\?$"),
    (lambda: cygrad.array([1]), AttributeError, r"Did you mean 'tensor'\?$"),
    (lambda: cygrad.quantize_per_tensor(X), AttributeError, r"There is no quantization"),
    (lambda: vmap(lambda x: x if x > 0 else -x)(cygrad.tensor([1.0, -1.0])), RuntimeError, r"data-dependent .* if"),
    (lambda: vmap(lambda x: x.item())(cygrad.tensor([1.0, -1.0])), RuntimeError, r"^vmap: item\(\) of a tensor"),
])
def test_errors_say_what_to_write_instead(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(("expression", "meant"), [
    ("nn.Linearr", "Linear"), ("nn.functional.sofmax", "softmax"), ("optim.RMSpro", "RMSprop"), ("linalg.invv", "inv"),
    ("utils.data.DataLodaer", "DataLoader"), ("nn.utils.clip_grad_nrm_", "clip_grad_norm_"),
    ("zeros(2).reshap", "reshape"), ("nn.Linear(2, 2).weightt", "weight"), ("float32.itemsise", "itemsize"),
])
def test_tracebacks_of_misspelled_names_suggest_the_right_one(expression, meant, capsys):
    with pytest.raises(AttributeError) as caught:
        eval(f"cygrad.{expression}", {"cygrad": cygrad})
    sys.__excepthook__(caught.type, caught.value, caught.tb)
    assert f"Did you mean: '{meant}'?" in capsys.readouterr().err


def test_tensors_that_are_options_are_taken():
    assert nn.CrossEntropyLoss(cygrad.ones(3)).weight.shape == (3,)
    assert nn.BCEWithLogitsLoss(pos_weight=cygrad.ones(3)).pos_weight.shape == (3,)
    assert nn.ParameterList([cygrad.ones(2)])[0].shape == (2,)

    class Scaled(nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def forward(self, x):
            return x * self.scale

    assert Scaled(X)(X).shape == (2, 3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(5, 4))

    def forward(self, x):
        return self.body(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Identity(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("hooked", [False, True])
def test_errors_note_which_module_of_a_model_they_are_of(hooked):
    model = Model()
    if hooked:
        model.register_forward_hook(lambda module, inputs, output: None)
        model.blocks[1].body[2].register_forward_pre_hook(lambda module, inputs: None)
    for _ in range(2):                                          # the second error counts anew
        with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
            model(X)
        assert caught.value.__notes__ == ["in blocks.1.body.2 (Linear)"]
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(5, 4)(X)
    assert caught.value.__notes__ == ["in Linear"]


def test_notes_of_other_errors_stay():
    class Failing(nn.Module):
        def forward(self, x):
            error = ValueError("no such thing")
            error.add_note("a note of its own")
            raise error

    with pytest.raises(ValueError, match="no such thing") as caught:
        nn.Sequential(nn.Identity(), Failing())(X)
    assert caught.value.__notes__ == ["a note of its own", "in 1 (Failing)"]
    assert caught.traceback[-1].name == "forward"
    with pytest.raises(KeyError) as caught:
        nn.ModuleDict()["key"]
    assert not hasattr(caught.value, "__notes__")


def test_errors_keep_their_hints_while_a_program_replaces_module_call(monkeypatch):
    former = nn.Module.__call__
    monkeypatch.setattr(nn.Module, "__call__", lambda self, *args: former(self, *args))
    with pytest.raises(AttributeError, match=r"^Flatten: argument 'input' must be Tensor"):
        nn.Flatten()("abc")
    with pytest.raises(RuntimeError, match=r"^linear: ") as caught:
        nn.Sequential(nn.Linear(2, 3))(cygrad.ones(1, 4))
    assert caught.value.__notes__ == ["in 0 (Linear)"]
