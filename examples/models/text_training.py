"""Command line, training loop, report and picture of the two examples with text."""

import argparse
import signal
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm.auto import tqdm

import cygrad
from cygrad import nn, optim
from models.text import Text, generate, license

__all__ = ["run"]


def arguments(description, defaults):
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=description.strip().partition("\n")[0])
    for name, help_text in (
        ("steps", "training steps"),
        ("batch", "pieces of text per step"),
        ("length", "characters of a piece"),
        ("size", "features of the model"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=defaults[name], help=f"{help_text} (default: {defaults[name]})"
        )
    parser.add_argument(
        "--lr", type=float, default=defaults["lr"], help=f"largest learning rate (default: {defaults['lr']})"
    )
    parser.add_argument("--text", type=Path, help="a text file (default: Python's license)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if min(options.steps, options.batch, options.length, options.size) < 1:
        parser.error("--steps, --batch, --length and --size must be at least 1")
    return options


def loss_of(model, pieces):
    """Return the cross entropy of the next character, in nats."""
    numbers, following = pieces
    scores = model(numbers)
    return nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())


def train(model, text, options):
    """Train; return the losses of the steps."""
    random = np.random.default_rng(options.seed)
    optimizer = optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, options.lr, total_steps=options.steps + 1)
    losses = []
    with tqdm(
        total=options.steps * options.batch * options.length, unit=" characters", unit_scale=True, file=sys.stderr
    ) as bar:
        for pieces in text.batches(options.batch, options.steps, random):
            optimizer.zero_grad()
            loss = loss_of(model, pieces)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
            bar.update(options.batch * options.length)
    return losses


def baseline(text):
    """Return the loss of a bigram model, from the frequencies of character pairs in the training part."""
    counts = np.ones((len(text.characters),) * 2)
    np.add.at(counts, (text.train[:-1], text.train[1:]), 1)
    return -np.log(counts / counts.sum(1, keepdims=True))[text.test[:-1], text.test[1:]].mean()


def draw(losses, levels, path):
    """Draw the loss of the steps, and reference levels."""
    figure, axes = plt.subplots(figsize=(8, 5))
    axes.plot(losses, linewidth=0.5, alpha=0.4, color="C0")
    window = min(25, len(losses))
    smooth = np.convolve(losses, np.full(window, 1 / window), mode="valid")
    axes.plot(np.arange(window, window + len(smooth)) - 1, smooth, label="training", color="C0")
    for number, (title, level) in enumerate(levels.items(), 1):
        axes.axhline(level, label=title, color=f"C{number}", linestyle="--", linewidth=1)
    axes.set(xlabel="step", ylabel="nats per character")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(description, defaults, build, picture):
    """Train, report, generate text and draw."""
    options = arguments(description, defaults)
    text = Text(license() if options.text is None else options.text.read_text(encoding="utf-8"), options.length)
    options.out.mkdir(parents=True, exist_ok=True)
    cygrad.manual_seed(options.seed)
    model = build(len(text.characters), options)
    begin = time.perf_counter()
    losses = train(model, text, options)
    seconds = time.perf_counter() - begin
    with cygrad.no_grad():
        found = loss_of(model, text.test_pieces()).item()
    pairs = baseline(text)
    print(
        f"\n{sum(parameter.numel() for parameter in model.parameters()):,} parameters, {seconds:.1f} s, "
        f"{options.steps * options.batch * options.length / seconds:,.0f} characters/s"
    )
    print(
        f"end of the text, never seen: {found:.3f} nats per character ({found / np.log(2):.2f} bits); "
        f"counting pairs of characters: {pairs:.3f}"
    )
    print("\n" + generate(model, text, "The license", 300, 0.5, np.random.default_rng(options.seed)))
    path = options.out / picture
    draw(losses, {"never seen": found, "pairs of characters": pairs}, path)
    print(f"\nloss curve: {path}")


def run(description, defaults, build, picture):
    """Run `main`; exit quietly on Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main(description, defaults, build, picture)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
