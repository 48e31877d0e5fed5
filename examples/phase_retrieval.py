"""
Phase retrieval: find a complex-valued object from the intensities of diffraction patterns, without their phases.

The magnitude of the object is a handwritten digit, its phase another one. Each pattern is taken through a known random
mask; only squared magnitudes of its Fourier transform are measured, with noise. The complex pixels are parameters and
are found by gradient descent on a real loss, from a spectral start: see Candes, Li and Soltanolkotabi, Phase retrieval
via Wirtinger flow (2015). Writes phase_retrieval.png into the folder given by --out.
Needs scikit-learn, matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

# Exit immediately on Ctrl-C during imports, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from tqdm.auto import tqdm  # noqa: E402

import cygrad  # noqa: E402
from cygrad import optim  # noqa: E402


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of the optimizer (default: 200)")
    parser.add_argument("--masks", type=int, default=8, help="diffraction patterns (default: 8)")
    parser.add_argument("--noise", type=float, default=0.02, help="relative noise of the intensities (default: 0.02)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if min(options.steps, options.masks) < 1:
        parser.error("--steps and --masks must be at least 1")
    return options


def secret(size=32):
    """Return the object: its magnitude is one digit, its phase another one."""
    images, _ = load_digits(return_X_y=True)
    pixel = np.ones((size // 8, size // 8))
    amplitude, phase = (np.kron(images[number].reshape(8, 8) / 16, pixel) for number in (3, 8))
    return (0.2 + 0.8 * amplitude) * np.exp(1j * np.pi * (phase - 0.5))


def fourier(size):
    """Return the unitary matrix of the discrete Fourier transform."""
    places = np.arange(size)
    return np.exp(-2j * np.pi * np.outer(places, places) / size) / np.sqrt(size)


class Patterns:
    """Return the measurements: squared magnitudes of the Fourier transform after each mask."""

    def __init__(self, size, masks, random):
        self.transform = cygrad.from_numpy(fourier(size))
        self.masks = cygrad.from_numpy(np.exp(2j * np.pi * random.random((masks, size, size))))

    def fields(self, pixels):
        """Return the complex waves (masks, size, size), which cannot be measured."""
        return self.transform @ (self.masks * pixels) @ self.transform.transpose(0, 1)

    def __call__(self, pixels):
        """Return the intensities."""
        return self.fields(pixels).abs() ** 2

    def backwards(self, fields):
        """Apply the adjoint of `fields`."""
        inverse = self.transform.conj()
        return (self.masks.conj() * (inverse @ fields @ inverse.transpose(0, 1))).mean(0)


def spectral_start(patterns, measured, random, rounds=30):
    """Return a spectral initialization: the leading eigenvector of intensity-weighted fields, by power iteration."""
    shape = tuple(measured.shape[1:])
    pixels = cygrad.from_numpy(random.standard_normal(shape) + 1j * random.standard_normal(shape))
    weights = cygrad.clamp_max(measured, 3 * measured.mean().item())
    for _ in range(rounds):
        pixels = patterns.backwards(weights * patterns.fields(pixels))
        pixels = pixels / (pixels.abs() ** 2).sum().sqrt()
    return pixels * measured.sum((1, 2)).mean().sqrt()


def aligned(found, true):
    """Remove the global phase of the result, which measurements do not determine."""
    return found * np.exp(-1j * np.angle(np.vdot(true, found)))


def relative_error(found, true):
    """Return the relative error in the 2-norm."""
    return np.linalg.norm(aligned(found, true) - true) / np.linalg.norm(true)


def retrieve(patterns, measured, pixels, steps, lr):
    """Minimize the loss of amplitudes; return pixels and losses."""
    pixels = pixels.clone().requires_grad_()
    optimizer = optim.Adam([pixels], lr=lr)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    amplitudes, losses = measured.sqrt(), []
    for _ in tqdm(range(steps), unit=" steps", file=sys.stderr):
        optimizer.zero_grad()
        loss = ((patterns.fields(pixels).abs() - amplitudes) ** 2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return pixels.detach(), losses


def draw(true, start, found, measured, losses, path):
    """Draw magnitude and phase of object, start and result, one pattern, and the loss."""
    figure, axes = plt.subplots(2, 4, figsize=(12, 6))
    for column, (title, values) in enumerate({"object": true, "start": start, "found": found}.items()):
        values = aligned(values, true)
        axes[0, column].imshow(np.abs(values), cmap="gray", vmin=0, vmax=1)
        axes[0, column].set_title(f"{title}: magnitude")
        axes[1, column].imshow(np.angle(values), cmap="twilight", vmin=-np.pi, vmax=np.pi)
        axes[1, column].set_title(f"{title}: phase")
    axes[0, 3].imshow(np.log(measured + 1e-3), cmap="magma")
    axes[0, 3].set_title("one of the patterns (log)")
    for one in (*axes[:, :3].flat, axes[0, 3]):
        one.set_axis_off()
    axes[1, 3].semilogy(losses)
    axes[1, 3].set(xlabel="step", title="loss")
    axes[1, 3].grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    """Measure, retrieve, compare and draw."""
    options = arguments()
    random = np.random.default_rng(options.seed)
    true = secret()
    patterns = Patterns(len(true), options.masks, random)
    measured = patterns(cygrad.from_numpy(true))
    measured = measured * cygrad.from_numpy(1 + options.noise * random.standard_normal(measured.shape)).clamp_min(0)
    options.out.mkdir(parents=True, exist_ok=True)
    start = spectral_start(patterns, measured, random)
    found, losses = retrieve(patterns, measured, start, options.steps, options.lr)
    for title, pixels in (("spectral start", start), ("found", found)):
        print(f"{title + ':':16}relative error {relative_error(pixels.numpy(), true):.4f}")
    print(f"{'loss:':16}{losses[0]:.2e} -> {losses[-1]:.2e}, {options.masks} patterns with {options.noise:.0%} noise")
    path = options.out / "phase_retrieval.png"
    draw(true, start.numpy(), found.numpy(), measured[0].numpy(), losses, path)
    print(f"pictures: {path}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
