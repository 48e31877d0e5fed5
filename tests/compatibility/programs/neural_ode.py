"""A neural ordinary differential equation fitted to a spiral; gradients by the adjoint equation, in constant memory."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--data_size", type=int, default=100)
parser.add_argument("--batch_time", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--niters", type=int, default=20)
parser.add_argument("--test_freq", type=int, default=5)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--gpu", type=int, default=0)
parser.add_argument("--save", default=None)
args = parser.parse_args()

device = torch.device("cuda:" + str(args.gpu) if torch.cuda.is_available() else "cpu")
torch.manual_seed(args.seed)


def rk4(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def solve(func, y, times):
    states = [y]
    for start, end in zip(times[:-1], times[1:]):
        y = rk4(func, start, end - start, y)
        states.append(y)
    return torch.stack(states)


class Adjoint(torch.autograd.Function):
    """Forward keeps the solution at the given times only; backward solves the adjoint equation from the end."""

    @staticmethod
    def forward(ctx, func, y0, times, *params):
        ctx.func = func
        with torch.no_grad():
            states = solve(func, y0, times)
        ctx.save_for_backward(states, times, *params)
        return states

    @staticmethod
    def backward(ctx, grad):
        states, times, *params = ctx.saved_tensors
        shapes = [p.shape for p in params]

        def augmented(t, packed):
            y, a = packed[:n].view_as(states[0]), packed[n:2 * n].view_as(states[0])
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = ctx.func(t, y)
                grads = torch.autograd.grad(f, (y, *params), -a, allow_unused=True)
            grads = [torch.zeros(s) if g is None else g for g, s in zip(grads, [y.shape, *shapes])]
            return torch.cat([f.detach().reshape(-1), *(g.reshape(-1) for g in grads)])

        n = states[0].numel()
        a = grad[-1]
        total = torch.zeros(sum(p.numel() for p in params))
        for i in range(len(times) - 1, 0, -1):
            packed = torch.cat([states[i].reshape(-1), a.reshape(-1), total])
            packed = rk4(augmented, times[i], times[i - 1] - times[i], packed)
            a = packed[n:2 * n].view_as(a) + grad[i - 1]
            total = packed[2 * n:]
        parts = torch.split(total, [s.numel() for s in shapes])
        return (None, a, None, *(part.view(s) for part, s in zip(parts, shapes)))


def odeint_adjoint(func, y0, times):
    return Adjoint.apply(func, y0, times, *func.parameters())


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y ** 3, true_A)


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y ** 3)


true_y0 = torch.tensor([[2.0, 0.0]]).to(device)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(device)
t = torch.linspace(0.0, 5.0, args.data_size).to(device)
with torch.no_grad():
    true_y = solve(Lambda(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[:args.batch_size]
    batch_y0 = true_y[s]
    batch_t = t[:args.batch_time]
    batch_y = torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0)
    return batch_y0.squeeze(1), batch_t, batch_y.squeeze(2)


func = ODEFunc().to(device)
optimizer = optim.RMSprop(func.parameters(), lr=1e-2)
for itr in range(1, args.niters + 1):
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    pred_y = odeint_adjoint(func, batch_y0, batch_t)
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    if itr % args.test_freq == 0:
        direct_loss = torch.mean(torch.abs(solve(func, batch_y0, batch_t) - batch_y))
        direct = torch.autograd.grad(direct_loss, func.net[0].weight)
        with torch.no_grad():
            pred_y = solve(func, true_y0, t)
            total = torch.mean(torch.abs(pred_y - true_y))
        print(f"Iter {itr:04d} | Batch Loss {loss.item():.5f} | Total Loss {total.item():.5f} | "
              f"gradient {direct[0].norm().item():.5f}")
if args.save:
    torch.save(func.state_dict(), args.save)
