"""Convolutional networks trained from equal weights: 50 losses equal PyTorch's."""

import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad
from tests.reference import torch

pytestmark = pytest.mark.slow

MODELS = Path(__file__).parents[2] / "examples"


def lenet(nn):
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def residual(nn):
    """A residual block that makes images smaller, and one that does not."""

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))

    return nn.Sequential(Block(1, 8, 2), Block(8, 8, 1), nn.AdaptiveAvgPool2d((7, 1)), nn.Flatten(),
                         nn.Linear(56, 10))


def images_and_classes():
    """Noise, brighter in a place that depends on the class: something to be learned."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 10, 200)
    images = random.standard_normal((200, 1, 28, 28)) / 2
    for image, number in zip(images, classes, strict=True):
        image[0, 2 * number + 2:2 * number + 6, 5:20] += 1
    return images, classes


def losses(library, model):
    """Of 50 steps."""
    images, classes = (library.tensor(array) for array in images_and_classes())
    optimizer = library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    found = []
    for step in range(50):
        batch = slice(20 * (step % 10), 20 * (step % 10) + 20)
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(images[batch]), classes[batch])
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("network", [lenet, residual])
def test_loss_curve_is_that_of_torch(network):
    torch.manual_seed(0)
    theirs, own = network(torch.nn).double(), network(cygrad.nn).double()
    own.load_state_dict({name: cygrad.tensor(value.numpy().copy()) for name, value in theirs.state_dict().items()})
    found, expected = losses(cygrad, own), losses(torch, theirs)
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(own.state_dict()[name].numpy(), value.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


def test_networks_have_the_usual_names(monkeypatch):
    """Weights of ResNet-18 and 34 from elsewhere fit."""
    monkeypatch.syspath_prepend(str(MODELS))
    from models.resnet import resnet18, resnet34

    small, large = resnet18(), resnet34(num_classes=7)
    assert sum(parameter.numel() for parameter in small.parameters()) == 11_689_512
    assert small.state_dict()["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert "layer3.5.bn2.running_var" in large.state_dict()
    assert large.fc.weight.shape == (7, 512)
    sys.modules.pop("models.resnet", None)
