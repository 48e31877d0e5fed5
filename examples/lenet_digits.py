"""
Handwritten digits with LeNet: train it, report its accuracy, show misclassified images.

Writes the loss curve and the mistakes (lenet.png) into the folder given by --out.
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
from models.lenet import LeNet  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from tqdm.auto import tqdm  # noqa: E402

import cygrad  # noqa: E402
from cygrad import nn, optim  # noqa: E402


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="number of epochs (default: 20)")
    parser.add_argument("--batch", type=int, default=32, help="images per step (default: 32)")
    parser.add_argument("--lr", type=float, default=0.02, help="initial learning rate (default: 0.02)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if min(options.epochs, options.batch) < 1:
        parser.error("--epochs and --batch must be at least 1")
    return options


def load(seed):
    """Return images resized to 28 x 28, in [0, 1], and classes, for training and (a quarter) for the test."""
    images, classes = load_digits(return_X_y=True)
    small = cygrad.tensor((images / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    large = nn.functional.interpolate(small, size=(28, 28), mode="bilinear").numpy()
    return train_test_split(large, classes, test_size=0.25, stratify=classes, random_state=seed)


def moved(images, random):
    """Shift each image by up to three pixels, padded with zeros (augmentation)."""
    framed = np.pad(images, ((0, 0), (0, 0), (3, 3), (3, 3)))
    down, right = random.integers(0, 7, (2, len(images)))
    return np.stack([image[:, y : y + 28, x : x + 28] for image, y, x in zip(framed, down, right, strict=True)])


def train(model, images, classes, options):
    """Train; return the losses of all steps, and the seconds."""
    random = np.random.default_rng(options.seed)
    optimizer = optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, nesterov=True)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    losses, begin = [], time.perf_counter()
    with tqdm(
        total=options.epochs * len(images), desc="LeNet", unit=" images", unit_scale=True, file=sys.stderr
    ) as bar:
        for _ in range(options.epochs):
            order = random.permutation(len(images))
            for start in range(0, len(order), options.batch):
                batch = order[start : start + options.batch]
                optimizer.zero_grad()
                scores = model(cygrad.tensor(moved(images[batch], random)))
                loss = nn.functional.cross_entropy(scores, cygrad.tensor(classes[batch]))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                bar.update(len(batch))
            schedule.step()
    return losses, time.perf_counter() - begin


def predictions(model, images):
    """Return the classes with the highest scores."""
    model.eval()
    with cygrad.inference_mode():
        return model(cygrad.tensor(images)).argmax(1).numpy()


def draw(losses, images, classes, found, path):
    """Draw the loss curve, and the first misclassified images."""
    wrong = np.flatnonzero(found != classes)[:8]
    figure = plt.figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot(1, 2, 1)
    axes.plot(losses, linewidth=0.7)
    axes.set(xlabel="step", ylabel="cross entropy of the training batches", yscale="log")
    axes.grid(alpha=0.3)
    for place, number in enumerate(wrong):
        axes = figure.add_subplot(4, 4, 3 + place % 2 + 4 * (place // 2))
        axes.imshow(images[number, 0], cmap="gray_r")
        axes.set_title(f"{classes[number]} taken for {found[number]}", fontsize=8)
        axes.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    """Train, test and draw."""
    options = arguments()
    train_images, test_images, train_classes, test_classes = load(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    cygrad.manual_seed(options.seed)
    model = LeNet()
    losses, seconds = train(model, train_images, train_classes, options)
    found = predictions(model, test_images)
    draw(losses, test_images, test_classes, found, options.out / "lenet.png")
    print(
        f"{options.epochs * len(train_images) / seconds:,.0f} images per second, accuracy on images never seen: "
        f"{(found == test_classes).mean():.1%}"
    )
    print(f"picture: {options.out / 'lenet.png'}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
