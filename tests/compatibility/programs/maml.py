"""Model-agnostic meta-learning of sine waves: the gradient of a step of gradient descent."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.autograd import grad


class Task:
    def __init__(self, generator):
        self.amplitude = 0.1 + 4.9 * torch.rand(1, generator=generator)
        self.phase = 3.1416 * torch.rand(1, generator=generator)
        self.generator = generator

    def sample(self, k):
        x = 10 * torch.rand(k, 1, generator=self.generator) - 5
        return x, self.amplitude * torch.sin(x + self.phase)


class Net(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 1))

    def argforward(self, x, weights):
        x = F.relu(F.linear(x, weights[0], weights[1]))
        x = F.relu(F.linear(x, weights[2], weights[3]))
        return F.linear(x, weights[4], weights[5])

    def forward(self, x):
        return self.net(x)


def adapt(model, task, k, steps, lr, create_graph=True):
    weights = [w.clone() for w in model.parameters()]
    x, y = task.sample(k)
    for _ in range(steps):
        loss = F.mse_loss(model.argforward(x, weights), y)
        grads = grad(loss, weights, create_graph=create_graph)
        weights = [w - lr * g for w, g in zip(weights, grads)]
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--inner_steps", type=int, default=2)
    parser.add_argument("--inner_lr", type=float, default=0.01)
    parser.add_argument("--meta_lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", default=None)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator()
    generator.manual_seed(args.seed)
    model = Net()
    meta_optimizer = optim.Adam(model.parameters(), lr=args.meta_lr)
    for iteration in range(1, args.iterations + 1):
        meta_loss = torch.zeros(())
        for _ in range(args.tasks):
            task = Task(generator)
            weights = adapt(model, task, args.k, args.inner_steps, args.inner_lr)
            x, y = task.sample(args.k)
            meta_loss = meta_loss + F.mse_loss(model.argforward(x, weights), y)
        meta_grads = grad(meta_loss / args.tasks, list(model.parameters()))
        for w, g in zip(model.parameters(), meta_grads):
            w.grad = g
        meta_optimizer.step()
        if iteration % 5 == 0:
            print(f"{iteration}/{args.iterations}. loss: {meta_loss.item() / args.tasks:.5f}")
    task = Task(torch.Generator().manual_seed(1))
    x, y = task.sample(50)
    for steps in (0, 1, 4):
        task.generator.manual_seed(2)
        weights = adapt(model, task, args.k, steps, args.inner_lr, create_graph=False)
        with torch.no_grad():
            print(f"after {steps} steps: {F.mse_loss(model.argforward(x, weights), y).item():.5f}")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
