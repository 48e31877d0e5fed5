"""gpytorch: an exact Gaussian process and a variational one, learned and asked."""

import math

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(x * 2 * math.pi) + torch.randn(x.size()) * 0.1


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for step in range(8):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    print("exact", loss.item(), model.covariance.base_kernel.lengthscale.item(), likelihood.noise.item())
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(model(torch.linspace(0, 1, 7)))
    lower, upper = prediction.confidence_region()
    print("mean", *prediction.mean.tolist())
    print("width", *(upper - lower).tolist())


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution,
                                                                  learn_inducing_locations=True))
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


torch.manual_seed(1)
model = Variational(x[::5, None].clone())
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model.train()
likelihood.train()
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=40)
optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
for step in range(4):
    optimizer.zero_grad()
    loss = -bound(model(x[:, None]), y)
    loss.backward()
    optimizer.step()
    print("variational", loss.item())
