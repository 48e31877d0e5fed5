"""
Logistic regression on a real data set, by cygrad's L-BFGS, and by scipy.optimize with cygrad's gradients.

The data are measurements of breast tumours (569 samples, 30 features, benign or malignant). The loss is convex, so both
must find the same weights. Writes the convergence curves (lbfgs_fit.png) into the folder given by --out.
Needs scikit-learn (with SciPy), matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

# Exit immediately on Ctrl-C during imports, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from tqdm.auto import tqdm  # noqa: E402

import cygrad  # noqa: E402
from cygrad import nn, optim  # noqa: E402


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=100, help="maximum number of iterations (default: 100)")
    parser.add_argument("--penalty", type=float, default=0.01, help="factor of the squared weights (default: 0.01)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if options.iterations < 1:
        parser.error("--iterations must be at least 1")
    return options


def load(seed):
    """Return standardized features and classes, for training and (a quarter) for the test."""
    features, classes = load_breast_cancer(return_X_y=True)
    train, test, train_classes, test_classes = train_test_split(
        features, classes.astype(float), test_size=0.25, stratify=classes, random_state=seed
    )
    mean, deviation = train.mean(0), train.std(0)
    return [
        cygrad.from_numpy(np.ascontiguousarray(part))
        for part in ((train - mean) / deviation, (test - mean) / deviation, train_classes, test_classes)
    ]


class Problem:
    """Penalized loss of logistic regression; counts its evaluations."""

    def __init__(self, features, classes, penalty):
        self.features, self.classes, self.penalty = features, classes, penalty
        self.model = nn.Linear(features.shape[1], 1, dtype=cygrad.float64)
        self.reset()

    def reset(self):
        """Set all weights to zero."""
        with cygrad.no_grad():
            for weight in self.model.parameters():
                weight.zero_()
        self.losses = []

    def loss(self):
        """Return the loss, and compute gradients of the parameters."""
        self.model.zero_grad()
        scores = self.model(self.features).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, self.classes)
        loss = loss + self.penalty * (self.model.weight**2).sum()
        loss.backward()
        self.losses.append(loss.item())
        return loss

    def at(self, vector):
        """Return loss and gradient at a vector of all parameters, for scipy.optimize."""
        nn.utils.vector_to_parameters(cygrad.from_numpy(vector.copy()), self.model.parameters())
        loss = self.loss().item()
        return loss, nn.utils.parameters_to_vector(weight.grad for weight in self.model.parameters()).numpy()

    def vector(self):
        """Return all parameters as one array."""
        return nn.utils.parameters_to_vector(self.model.parameters()).detach().numpy()

    def gradient_norm(self):
        """Return the maximum norm of the gradient at the current parameters."""
        self.loss()
        return max(weight.grad.abs().max().item() for weight in self.model.parameters())

    def accuracy(self, features, classes):
        """Return the accuracy."""
        with cygrad.no_grad():
            return ((self.model(features).squeeze(1) > 0) == (classes > 0.5)).double().mean().item()


def by_cygrad(problem, iterations):
    """Minimize with cygrad's L-BFGS; the bar counts evaluations, because one call runs all iterations."""
    optimizer = optim.LBFGS(
        problem.model.parameters(),
        max_iter=iterations,
        max_eval=20 * iterations,
        tolerance_grad=1e-8,
        tolerance_change=0,
        history_size=10,
        line_search_fn="strong_wolfe",
    )
    with tqdm(unit=" evaluations", desc="cygrad", file=sys.stderr) as bar:

        def closure():
            bar.update()
            return problem.loss()

        optimizer.step(closure)


def by_scipy(problem, iterations):
    """Minimize with SciPy's L-BFGS and cygrad's gradients."""
    with tqdm(unit=" evaluations", desc="scipy", file=sys.stderr) as bar:

        def function(vector):
            bar.update()
            return problem.at(vector)

        minimize(
            function,
            problem.vector(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "gtol": 1e-8, "ftol": 0, "maxcor": 10},
        )


def draw(ways, path):
    """Draw the excess of the loss over its minimum, by number of evaluations."""
    lowest = min(min(losses) for losses in ways.values())
    figure, axes = plt.subplots(figsize=(8, 5))
    for title, losses in ways.items():
        axes.semilogy(np.minimum.accumulate(losses) - lowest + 1e-16, label=title)
    axes.set(xlabel="evaluations of loss and gradient", ylabel="loss above the minimum")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    """Solve with both optimizers, compare and draw."""
    options = arguments()
    train, test, train_classes, test_classes = load(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    problem = Problem(train, train_classes, options.penalty)
    rows, ways, vectors = [], {}, []
    for title, solve in (("cygrad L-BFGS", by_cygrad), ("scipy L-BFGS-B", by_scipy)):
        problem.reset()
        begin = time.perf_counter()
        solve(problem, options.iterations)
        seconds = time.perf_counter() - begin
        ways[title] = list(problem.losses)
        vectors.append(problem.vector())
        rows.append(
            (
                title,
                len(problem.losses),
                seconds,
                problem.loss().item(),
                problem.gradient_norm(),
                problem.accuracy(test, test_classes),
            )
        )
    print(f"\n{'':16}{'evaluations':>12}{'seconds':>9}{'loss':>16}{'|gradient|':>12}{'test accuracy':>15}")
    for title, evaluations, seconds, loss, gradient, share in rows:
        print(f"{title:16}{evaluations:12}{seconds:9.3f}{loss:16.12f}{gradient:12.1e}{share:14.1%}")
    print(f"\nlargest difference of the weights: {np.abs(vectors[0] - vectors[1]).max():.1e}")
    path = options.out / "lbfgs_fit.png"
    draw(ways, path)
    print(f"way down: {path}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
