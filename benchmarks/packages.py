"""
Short programs with packages on top of PyTorch: `python -m benchmarks.packages NAME` runs one.

`benchmarks.programs --packages` measures each with cygrad in place of PyTorch, and with PyTorch. Install the packages
by ``pip install stable-baselines3 torchdiffeq torchsde gpytorch pyro-ppl transformers diffusers backpack-for-pytorch
skorch x-transformers nflows``.
"""

import sys

import numpy as np


def baselines(name, **options):
    """Train an agent on the cart pole, or on the pendulum if its actions are continuous."""
    import stable_baselines3

    environment = "Pendulum-v1" if name == "SAC" else "CartPole-v1"
    getattr(stable_baselines3, name)("MlpPolicy", environment, seed=0, device="cpu", **options).learn(2_000)


def neural_ode():
    """Fit a spiral by a differential equation."""
    import torch
    from torchdiffeq import odeint

    network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    times = torch.linspace(0.0, 2.0, 20)
    target = torch.stack([times.cos(), times.sin()], 1)
    for _ in range(30):
        optimizer.zero_grad()
        loss = (odeint(lambda t, y: network(y), target[0], times, method="dopri5") - target).square().mean()
        loss.backward()
        optimizer.step()


def stochastic_equation():
    """Fit drift and diffusion of a stochastic differential equation."""
    import torch
    import torchsde

    class Equation(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.drift, self.noise = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def f(self, t, y):
            return self.drift(y)

        def g(self, t, y):
            return 0.1 * self.noise(y).sigmoid()

    equation = Equation()
    optimizer = torch.optim.Adam(equation.parameters(), lr=1e-2)
    for _ in range(20):
        optimizer.zero_grad()
        torchsde.sdeint(equation, torch.ones(16, 3), torch.linspace(0, 1, 20), dt=0.05)[-1].square().mean().backward()
        optimizer.step()


def gaussian_process():
    """Fit the hyperparameters of a Gaussian process to 100 points."""
    import gpytorch
    import torch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x = torch.linspace(0, 1, 100)
    y = (6 * x).sin() + 0.1 * torch.randn(100)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Process(x, y, likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(100):
        optimizer.zero_grad()
        (-objective(model(x), y)).backward()
        optimizer.step()


def regression_model():
    import pyro
    import torch
    from pyro import distributions

    x = torch.linspace(-1, 1, 50)
    y = 3 * x - 1 + 0.1 * torch.randn(50)

    def model():
        slope = pyro.sample("slope", distributions.Normal(0.0, 5.0))
        start = pyro.sample("start", distributions.Normal(0.0, 5.0))
        with pyro.plate("points", len(x)):
            pyro.sample("y", distributions.Normal(slope * x + start, 0.1), obs=y)

    return model


def variational_inference():
    """Stochastic variational inference of a line."""
    import pyro

    model = regression_model()
    guide = pyro.infer.autoguide.AutoNormal(model)
    inference = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), pyro.infer.Trace_ELBO())
    for _ in range(300):
        inference.step()


def hamiltonian_sampling():
    """Samples of the posterior of a line, by the no-U-turn sampler."""
    import pyro

    pyro.infer.MCMC(pyro.infer.NUTS(regression_model()), num_samples=30, warmup_steps=30, disable_progbar=True).run()


def language_model():
    """Train a small GPT-2 on random tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=64, n_embd=64, n_layer=2, n_head=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(15):
        tokens = torch.randint(0, 200, (4, 32))
        optimizer.zero_grad()
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()


def diffusion():
    """Train a small U-Net to remove noise."""
    import torch
    from diffusers import DDPMScheduler, UNet2DModel

    model = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 16), norm_num_groups=4,
                        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2, layers_per_block=1)
    schedule, optimizer = DDPMScheduler(100), torch.optim.Adam(model.parameters())
    for _ in range(15):
        images, noise, times = torch.randn(4, 1, 8, 8), torch.randn(4, 1, 8, 8), torch.randint(0, 100, (4,))
        optimizer.zero_grad()
        (model(schedule.add_noise(images, noise, times), times).sample - noise).square().mean().backward()
        optimizer.step()


def second_order():
    """Gradients of each sample and the diagonal of the Gauss-Newton matrix."""
    import torch
    from backpack import backpack, extend
    from backpack.extensions import BatchGrad, DiagGGNExact

    model = extend(torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5)))
    loss = extend(torch.nn.CrossEntropyLoss())
    for _ in range(100):
        model.zero_grad()
        with backpack(BatchGrad(), DiagGGNExact()):
            loss(model(torch.randn(32, 20)), torch.randint(0, 5, (32,))).backward()


def tabular():
    """A classifier with the interface of scikit-learn."""
    import skorch
    import torch

    x = np.random.default_rng(0).normal(size=(500, 20)).astype("float32")
    network = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    skorch.NeuralNetClassifier(network, criterion=torch.nn.CrossEntropyLoss, max_epochs=10, lr=0.1, verbose=0).fit(
        x, (x.sum(1) > 0).astype("int64"))


def attention():
    """Train a decoder of x-transformers on random tokens."""
    import torch
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    model = AutoregressiveWrapper(TransformerWrapper(
        num_tokens=200, max_seq_len=32, attn_layers=Decoder(dim=64, depth=2, heads=2)))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(15):
        optimizer.zero_grad()
        model(torch.randint(0, 200, (4, 32))).backward()
        optimizer.step()


def flow():
    """Fit a density by a masked autoregressive flow."""
    import torch
    from nflows import distributions, flows, transforms

    layers = [layer for _ in range(3) for layer in (
        transforms.ReversePermutation(2), transforms.MaskedAffineAutoregressiveTransform(2, 16))]
    model = flows.Flow(transforms.CompositeTransform(layers), distributions.StandardNormal([2]))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(100):
        optimizer.zero_grad()
        (-model.log_prob(torch.randn(64, 2)).mean()).backward()
        optimizer.step()


USES = {
    "stable-baselines3: PPO": lambda: baselines("PPO", n_steps=256),
    "stable-baselines3: DQN": lambda: baselines("DQN", learning_starts=100),
    "stable-baselines3: SAC": lambda: baselines("SAC", learning_starts=1_700),
    "torchdiffeq: neural ODE": neural_ode,
    "torchsde: neural SDE": stochastic_equation,
    "gpytorch: Gaussian process": gaussian_process,
    "pyro: variational inference": variational_inference,
    "pyro: NUTS": hamiltonian_sampling,
    "transformers: small GPT-2": language_model,
    "diffusers: small U-Net": diffusion,
    "backpack: per-sample gradients": second_order,
    "skorch: tabular classifier": tabular,
    "x-transformers: decoder": attention,
    "nflows: autoregressive flow": flow,
}

if __name__ == "__main__":
    import torch

    torch.manual_seed(0)
    USES[sys.argv[1]]()
