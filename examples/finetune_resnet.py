"""
Fine-tuning: ResNet-18 learns the digits 0 to 4; then its body is frozen, and a new head learns 5 to 9.

Frozen layers are not recorded: they save nothing, and no gradient is computed for them. Writes the loss
curves of both parts (finetune.png) into the folder given by --out.
Needs scikit-learn, matplotlib and tqdm: ``pip install cygrad[examples]``.
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
from models.resnet import resnet18  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from tqdm.auto import tqdm  # noqa: E402

import cygrad  # noqa: E402
from cygrad import nn, optim  # noqa: E402

KNOWN = 5  # digits below are learned first, the others with the new head


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=12, help="epochs of each part (default: 12)")
    parser.add_argument("--batch", type=int, default=32, help="images per step (default: 32)")
    parser.add_argument("--width", type=int, default=16, help="channels of the first stage (default: 16)")
    parser.add_argument("--size", type=int, default=32, help="height and width of the images (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if min(options.epochs, options.batch, options.width, options.size) < 1:
        parser.error("--epochs, --batch, --width and --size must be at least 1")
    return options


def load(options):
    """Return images of the given size, and classes."""
    images, classes = load_digits(return_X_y=True)
    small = cygrad.tensor((images / 8 - 1).astype(np.float32)).reshape(-1, 1, 8, 8)
    return nn.functional.interpolate(small, size=options.size, mode="bicubic").numpy(), classes


def train(model, optimizer, images, classes, options, title):
    """Train; return the losses of all steps, and images per second."""
    random = np.random.default_rng(options.seed)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    losses, begin = [], time.perf_counter()
    with tqdm(total=options.epochs * len(images), desc=title, unit=" images", file=sys.stderr) as bar:
        for _ in range(options.epochs):
            order = random.permutation(len(images))
            for start in range(0, len(order) - 1, options.batch):  # no batch of one, which has no variance
                batch = order[start : start + options.batch]
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(cygrad.tensor(images[batch])), cygrad.tensor(classes[batch]))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                bar.update(len(batch))
            schedule.step()
    return losses, options.epochs * len(images) / (time.perf_counter() - begin)


def accuracy(model, images, classes):
    """Return the accuracy."""
    model.eval()
    with cygrad.inference_mode():
        found = model(cygrad.tensor(images)).argmax(1).numpy()
    model.train()
    return (found == classes).mean()


def freeze(model, num_classes):
    """Freeze the network and add a new head."""
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, num_classes)
    return model


def draw(curves, path):
    """Draw the loss curves."""
    figure, axes = plt.subplots(figsize=(8, 5))
    for title, losses in curves.items():
        axes.plot(losses, label=title, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross entropy of the training batches", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    """Learn the first digits, freeze, learn the others, report and draw."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    images, classes = load(options)
    cygrad.manual_seed(options.seed)
    model = resnet18(KNOWN, width=options.width, in_channels=1)
    curves, rows = {}, []
    for title, chosen in (("all layers, digits 0-4", classes < KNOWN), ("new head, digits 5-9", classes >= KNOWN)):
        train_images, test_images, train_classes, test_classes = train_test_split(
            images[chosen], classes[chosen] % KNOWN, test_size=0.25, stratify=classes[chosen], random_state=options.seed
        )
        if curves:
            freeze(model, 10 - KNOWN)
            optimizer = optim.SGD(model.fc.parameters(), lr=0.05, momentum=0.9)
        else:
            optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
        curves[title], speed = train(model, optimizer, train_images, train_classes, options, title)
        learned = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        rows.append((title, learned, speed, accuracy(model, test_images, test_classes)))
    draw(curves, options.out / "finetune.png")
    print(f"\n{'':26}{'learned numbers':>16}{'images/s':>10}{'test accuracy':>15}")
    for title, learned, speed, share in rows:
        print(f"{title:26}{learned:16,}{speed:10,.0f}{share:14.1%}")
    print(f"\nloss curves: {options.out / 'finetune.png'}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
