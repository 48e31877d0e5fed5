"""A physics-informed network for Burgers' equation u_t + u u_x = nu u_xx, with gradients of gradients."""

import argparse
from collections import OrderedDict

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--adam", type=int, default=25)
parser.add_argument("--lbfgs", type=int, default=3)
parser.add_argument("--points", type=int, default=256)
parser.add_argument("--seed", type=int, default=1234)
parser.add_argument("--save", default=None)
args = parser.parse_args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)

if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = []
        for i in range(self.depth - 1):
            layer_list.append((f"layer_{i}", torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append((f"activation_{i}", self.activation()))
        layer_list.append((f"layer_{self.depth - 1}", torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X_u, u, X_f, layers, nu):
        self.x_u = torch.tensor(X_u[:, 0:1], requires_grad=True).float().to(device)
        self.t_u = torch.tensor(X_u[:, 1:2], requires_grad=True).float().to(device)
        self.x_f = torch.tensor(X_f[:, 0:1], requires_grad=True).float().to(device)
        self.t_f = torch.tensor(X_f[:, 1:2], requires_grad=True).float().to(device)
        self.u = torch.tensor(u).float().to(device)
        self.nu = nu
        self.dnn = DNN(layers).to(device)
        self.iter = 0

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + u * u_x - self.nu * u_xx

    def loss_func(self):
        self.optimizer.zero_grad()
        loss_u = torch.mean((self.u - self.net_u(self.x_u, self.t_u)) ** 2)
        loss_f = torch.mean(self.net_f(self.x_f, self.t_f) ** 2)
        loss = loss_u + loss_f
        loss.backward()
        self.iter += 1
        if self.iter % 5 == 0:
            print(f"Iter {self.iter}, Loss: {loss.item():.5e}, "
                  f"Loss_u: {loss_u.item():.5e}, Loss_f: {loss_f.item():.5e}")
        return loss

    def train(self):
        self.dnn.train()
        self.optimizer = torch.optim.Adam(self.dnn.parameters(), lr=1e-3)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(self.optimizer, T_0=10)
        for _ in range(args.adam):
            self.optimizer.step(self.loss_func)
            scheduler.step()
        self.optimizer = torch.optim.LBFGS(self.dnn.parameters(), lr=1.0, max_iter=args.lbfgs, history_size=50,
                                           tolerance_grad=1e-5, line_search_fn="strong_wolfe")
        self.optimizer.step(self.loss_func)

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).float().to(device)
        t = torch.tensor(X[:, 1:2], requires_grad=True).float().to(device)
        self.dnn.eval()
        u, f = self.net_u(x, t), self.net_f(x, t)
        return u.detach().cpu().numpy(), f.detach().cpu().numpy()


x = np.linspace(-1, 1, 64)[:, None]
initial = np.hstack([x, 0 * x])
t = np.linspace(0, 1, 32)[:, None]
walls = np.vstack([np.hstack([0 * t - 1, t]), np.hstack([0 * t + 1, t])])
X_u = np.vstack([initial, walls])
u = np.vstack([-np.sin(np.pi * x), np.zeros((len(walls), 1))])
X_f = np.vstack([np.random.uniform([-1, 0], [1, 1], size=(args.points, 2)), X_u])
model = PhysicsInformedNN(X_u, u, X_f, [2, 20, 20, 20, 1], 0.01 / np.pi)
model.train()
u_pred, f_pred = model.predict(initial)
print(f"Error u: {np.linalg.norm(-np.sin(np.pi * x) - u_pred) / np.linalg.norm(np.sin(np.pi * x)):.4f}")
print(f"residual: {np.abs(f_pred).mean():.4f}")
if args.save:
    torch.save({"model_state_dict": model.dnn.state_dict(), "iter": model.iter}, args.save)
