"""pyro: variational inference with guides written and made, predictions, and Hamiltonian Monte Carlo."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from torch.distributions import constraints

pyro.set_rng_seed(0)
flips = torch.tensor([1.0] * 6 + [0.0] * 4)


def coin(data):
    fairness = pyro.sample("fairness", dist.Beta(torch.tensor(10.0), torch.tensor(10.0)))
    with pyro.plate("data", len(data)):
        pyro.sample("flips", dist.Bernoulli(fairness), obs=data)


def guide(data):
    a = pyro.param("a", torch.tensor(15.0), constraint=constraints.positive)
    b = pyro.param("b", torch.tensor(15.0), constraint=constraints.positive)
    pyro.sample("fairness", dist.Beta(a, b))


inference = SVI(coin, guide, pyro.optim.Adam({"lr": 0.05}), loss=Trace_ELBO())
losses = [inference.step(flips) for _ in range(150)]
a, b = pyro.param("a").item(), pyro.param("b").item()
print("coin", abs(a / (a + b) - 16 / 30) < 0.05, sum(losses[-50:]) / 50 < 8.5)

pyro.clear_param_store()
pyro.set_rng_seed(0)
x = torch.randn(50, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 3.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 3.0))
    noise = pyro.sample("noise", dist.LogNormal(0.0, 1.0))
    with pyro.plate("points", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, noise), obs=y)


made = AutoNormal(regression)
inference = SVI(regression, made, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
for step in range(150):
    loss = inference.step(x, y)
    if step % 10 == 0 and step < 50:
        print("loss", loss)
median = made.median(x, y)
# After 150 steps, rounding of sums affects the third digit.
print("median", *(round(number, 1) for number in [*median["weight"].tolist(), median["bias"].item()]))
print("drawn", Predictive(regression, guide=made, num_samples=5)(x)["y"].shape)
chains = MCMC(NUTS(regression), num_samples=40, warmup_steps=40, disable_progbar=True)
chains.run(x, y)
print("sampled", (chains.get_samples()["weight"].mean(0) - torch.tensor([1.0, -2.0])).abs().max().item() < 0.2)
