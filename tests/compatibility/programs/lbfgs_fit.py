"""Two sums of exponentials fitted to noisy data by L-BFGS, with the covariance of the parameters from the Hessian."""

import argparse

import numpy as np
import torch


class Decays(torch.nn.Module):
    def __init__(self, terms):
        super().__init__()
        self.amplitude = torch.nn.Parameter(torch.ones(terms, dtype=torch.double))
        self.log_rate = torch.nn.Parameter(torch.linspace(-1, 1, terms, dtype=torch.double))
        self.offset = torch.nn.Parameter(torch.zeros((), dtype=torch.double))

    def forward(self, t):
        return (self.amplitude * torch.exp(-t.unsqueeze(-1) * self.log_rate.exp())).sum(-1) + self.offset


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--terms", type=int, default=2)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--line-search", default="strong_wolfe", choices=["strong_wolfe", "none"])
    parser.add_argument("--save", default=None)
    args = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    t = torch.from_numpy(np.linspace(0, 6, args.points))
    y = 2.0 * torch.exp(-0.4 * t) + 1.0 * torch.exp(-3.0 * t) + 0.1 + args.noise * torch.randn_like(t)
    model = Decays(args.terms)
    search = args.line_search if args.line_search != "none" else None
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1 if search else 0.1, max_iter=8, history_size=8,
                                  line_search_fn=search)
    criterion = torch.nn.MSELoss()

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(t), y)
        loss.backward()
        return loss

    for i in range(args.iterations):
        loss = optimizer.step(closure)
        print(f"STEP {i}: loss {loss.item():.8f}")
    names, values = zip(*model.named_parameters())
    shapes = [value.shape for value in values]

    def objective(flat):
        parts = torch.split(flat, [shape.numel() for shape in shapes])
        state = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}
        return criterion(torch.func.functional_call(model, state, (t,)), y)

    flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    hessian = torch.autograd.functional.hessian(objective, flat)
    covariance = torch.linalg.inv(hessian) * 2 * objective(flat) / args.points
    names = ["amplitude"] * args.terms + ["log rate"] * args.terms + ["offset"]
    for name, value, error in zip(names, flat, covariance.diagonal().sqrt()):
        print(f"{name}: {value.item():.4f} +- {error.item():.4f}")
    if args.save:
        torch.save({"state": model.state_dict(), "covariance": covariance}, args.save)


if __name__ == "__main__":
    main()
