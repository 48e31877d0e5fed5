"""Typical uses of modules and optimizers, for strict type checking."""

from typing import assert_type

import cygrad
from cygrad import Tensor, nn, optim
from cygrad.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(3, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(width, 2, bias=False)
        self.scale = nn.Parameter(cygrad.ones(2))
        self.register_buffer("steps", cygrad.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu(self.norm(self.first(x)))
        out: Tensor = self.last(self.drop(x))
        return out * self.scale


net = Net(8)
net.train()
assert_type(net.eval(), Net)
weights: dict[str, Tensor] = net.state_dict()
net.load_state_dict(weights)
for name, parameter in net.named_parameters():
    assert_type(name, str)
    assert_type(parameter, nn.Parameter)
layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])
for layer in layers:
    assert_type(layer, nn.Module)
layers.append(nn.Conv2d(1, 2, kernel_size=3, padding=1))
criterion = nn.CrossEntropyLoss(reduction="sum")
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
schedule = StepLR(optimizer, step_size=10, gamma=0.5)
adam = optim.AdamW([{"params": net.first.parameters()}, {"params": [net.scale], "lr": 0.1}], lr=1e-3)
for _ in range(3):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(net(cygrad.randn(4, 3)), cygrad.tensor([0, 1, 1, 0]))
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    schedule.step()
rates: list[float] = schedule.get_last_lr()
shape: tuple[int, ...] = net.first.weight.shape
count: int = sum(p.numel() for p in net.parameters())
