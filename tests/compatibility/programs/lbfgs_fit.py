"""Fit a small network to noisy measurements with L-BFGS; then error bars from the curvature of the loss."""

import argparse

import torch
import torch.nn as nn
from torch.func import functional_call, grad, hessian, jacrev, vmap


class Curve(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def measurements(n, noise, device):
    x = torch.linspace(-3, 3, n, device=device, dtype=torch.float64).unsqueeze(1)
    y = torch.sin(2 * x.squeeze(1)) * torch.exp(-0.1 * x.squeeze(1) ** 2)
    return x, y + noise * torch.randn(n, device=device, dtype=torch.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=6)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--max-iter", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--decay", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--save", default=None)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")

    x, y = measurements(args.points, args.noise, device)
    model = Curve(args.hidden).double().to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=args.max_iter, line_search_fn="strong_wolfe")

    def penalized(parameters, x, y):
        misfit = ((functional_call(model, parameters, (x,)) - y) ** 2).sum()
        return misfit + args.decay * sum((p ** 2).sum() for p in parameters.values())

    def closure():
        optimizer.zero_grad()
        loss = penalized(dict(model.named_parameters()), x, y)
        loss.backward()
        return loss

    for step in range(1, args.steps + 1):
        loss = optimizer.step(closure)
        print(f"step {step} loss {loss.item():.6f}")

    # Laplace's approximation: the inverse of the Hessian is the covariance of the parameters.
    names = [name for name, _ in model.named_parameters()]
    shapes = [p.shape for p in model.parameters()]
    theta = nn.utils.parameters_to_vector(model.parameters()).detach()

    def unflatten(vector):
        parts = torch.split(vector, [shape.numel() for shape in shapes])
        return {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}

    curvature = hessian(lambda vector: penalized(unflatten(vector), x, y))(theta)
    variance = args.noise ** 2 * torch.linalg.inv(curvature / 2)
    print(f"curvature: trace {curvature.diagonal().sum().item():.4f}, "
          f"logdet {torch.linalg.slogdet(curvature)[1].item():.4f}")

    grid = torch.linspace(-3, 3, 7, device=device, dtype=torch.float64).unsqueeze(1)
    predict = lambda vector, point: functional_call(model, unflatten(vector), (point,))  # noqa: E731
    slopes = vmap(jacrev(predict), in_dims=(None, 0))(theta, grid)
    bars = torch.einsum("ni,ij,nj->n", slopes, variance, slopes).clamp_min(0).sqrt()
    for point, value, bar in zip(grid.squeeze(1).tolist(), model(grid).tolist(), bars.tolist()):
        print(f"x {point:.2f} y {value:.4f} +- {bar:.4f}")

    influence = vmap(grad(penalized), in_dims=(None, 0, 0))(unflatten(theta), x.unsqueeze(1), y.unsqueeze(1))
    norms = sum((g.flatten(1) ** 2).sum(1) for g in influence.values()).sqrt()
    print(f"samples: largest gradient {norms.max().item():.4f} of number {norms.argmax().item()}, "
          f"mean {norms.mean().item():.4f}")

    if args.save:
        torch.save({"model": model.state_dict(), "variance": variance}, args.save)
        again = Curve(args.hidden).double()
        again.load_state_dict(torch.load(args.save, weights_only=True)["model"])
        print(f"loaded: loss {penalized(dict(again.named_parameters()), x, y).item():.6f}")


if __name__ == "__main__":
    main()
