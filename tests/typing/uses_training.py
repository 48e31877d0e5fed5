"""A typical training program, for strict type checking."""

from typing import assert_type

import cygrad
from cygrad import Tensor, nn
from cygrad.func import grad, hessian, jacrev, value_and_grad, vmap
from cygrad.nn import functional as F
from cygrad.optim import Adam
from cygrad.optim.lr_scheduler import CosineAnnealingLR
from cygrad.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, 1, bias=False)
        self.scale = nn.Parameter(cygrad.ones(1))
        self.layers = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.seq = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        for layer in self.layers:
            x = layer(x)
        x = self.seq(x)
        result: Tensor = self.last(x) * self.scale
        return result


class Rows(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x, self.y = cygrad.randn(n, 4), cygrad.randn(n, 1)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


def train(epochs: int = 2) -> float:
    cygrad.manual_seed(0)
    model = Net(8)
    nn.init.xavier_uniform_(model.first.weight)
    weight = assert_type(model.first.weight, nn.Parameter)
    optimizer = Adam(model.parameters(), lr=1e-2)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    loader = DataLoader(Rows(64), batch_size=16, shuffle=True)
    loss_fn = nn.MSELoss()
    total = 0.0
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
    model.eval()
    with cygrad.no_grad():
        pred = model(cygrad.randn(3, 4))
    gradients = cygrad.autograd.grad(pred.sum() + weight.sum(), [weight])
    first = assert_type(gradients[0], Tensor)
    state = model.state_dict()
    model.load_state_dict(state)
    cygrad.save(state, "model.pt")
    inverse = assert_type(cygrad.linalg.inv(cygrad.eye(3)), Tensor)
    q, r = cygrad.linalg.qr(cygrad.randn(3, 3))
    u, s, vh = cygrad.linalg.svd(cygrad.randn(3, 3))
    n = cygrad.linalg.norm(inverse)
    g = grad(lambda v: (v ** 2).sum())(cygrad.ones(3))
    h = hessian(lambda v: (v ** 2).sum())(cygrad.ones(3))
    j = jacrev(lambda v: v ** 2)(cygrad.ones(3))
    b = vmap(lambda v: v.sum())(cygrad.ones(3, 2))
    value, slope = value_and_grad(lambda v: (v ** 2).sum())(cygrad.ones(3))
    data = TensorDataset(cygrad.ones(4, 2))
    left, right = random_split(data, [2, 2])
    print(first.shape, n, g, h, j, b, value, slope, len(left), len(right), q, r, u, s, vh)
    compiled = cygrad.compile(model)
    return total + float(compiled(cygrad.randn(3, 4)).sum())


class Square(cygrad.autograd.Function):
    @staticmethod
    def forward(ctx: cygrad.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: cygrad.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        x, = ctx.saved_tensors
        result: Tensor = 2 * x * grad
        return result


def squared(x: Tensor) -> Tensor:
    found: Tensor = Square.apply(x)
    return found


def elbo(location: Tensor) -> Tensor:
    q = cygrad.distributions.Normal(loc=location, scale=cygrad.ones(2))
    p = cygrad.distributions.MultivariateNormal(cygrad.zeros(2), covariance_matrix=cygrad.eye(2))
    divergence: Tensor = cygrad.distributions.kl_divergence(q, cygrad.distributions.Normal(0.0, 1.0))
    return p.log_prob(q.rsample()) + q.entropy().sum() - divergence.sum() + q.loc.sum() + q.mean.sum()
