"""
Handwritten digits: train a small network with one thread, with several on shared weights (Hogwild), and with several
that split each batch (DataParallel).

Writes the loss curves (losses.png) and the graph of the first batch (graph.svg) into the folder given by --out.
Needs scikit-learn, matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

# Exit immediately on Ctrl-C during imports, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from tqdm.auto import tqdm  # noqa: E402

import cygrad  # noqa: E402
from cygrad import nn, optim  # noqa: E402
from cygrad.autograd.drawing import to_svg  # noqa: E402

OPTIMIZERS = {
    "sgd": lambda parameters, lr: optim.SGD(parameters, lr=lr or 0.05, momentum=0.9, nesterov=True),
    "adam": lambda parameters, lr: optim.Adam(parameters, lr=lr or 1e-3),
    "adamw": lambda parameters, lr: optim.AdamW(parameters, lr=lr or 1e-3),
}
SHIFTS = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2, help="threads of the Hogwild run (default: 2)")
    parser.add_argument("--epochs", type=int, default=20, help="number of epochs (default: 20)")
    parser.add_argument("--batch", type=int, default=32, help="images per step (default: 32)")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="optimizer (default: sgd)")
    parser.add_argument("--lr", type=float, help="learning rate (default: depends on the optimizer)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--compile", action="store_true", help="execute each step as one native program")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures (default: out)")
    options = parser.parse_args()
    if min(options.threads, options.epochs, options.batch) < 1:
        parser.error("--threads, --epochs and --batch must be at least 1")
    return options


def load(seed):
    """Return images as rows of 64 numbers in [0, 1] and their classes, for training and (a quarter) for the test."""
    images, classes = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    train_images, test_images, train_classes, test_classes = train_test_split(
        images, classes, test_size=0.25, stratify=classes, random_state=seed
    )
    # Augmentation: a digit shifted by a pixel is the same digit.
    train_images = np.concatenate([shifted(train_images, *by) for by in SHIFTS])
    parts = train_images, test_images, np.tile(train_classes, len(SHIFTS)), test_classes
    return [cygrad.from_numpy(np.ascontiguousarray(part)) for part in parts]


def shifted(images, down, right):
    """Return the images shifted by some pixels, padded with zeros."""
    framed = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return framed[:, 1 - down : 9 - down, 1 - right : 9 - right].reshape(-1, 64)


def network():
    """Return a perceptron with two hidden layers."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


class Training:
    """One run: threads take batches from a shared queue until it is empty."""

    def __init__(self, model, images, classes, options, n_threads):
        self.images, self.classes, self.options = images, classes, options
        self.replicas = [model] if n_threads == 1 else [nn.parallel.share_weights(model) for _ in range(n_threads)]
        self.total = options.epochs * len(images)
        self.losses, self.done, self.seconds, self.error = [], 0, 0.0, None
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._supply = self._batches(np.random.default_rng(options.seed))

    def _batches(self, random):
        for _ in range(self.options.epochs):
            order = random.permutation(len(self.images))
            for start in range(0, len(order), self.options.batch):
                yield cygrad.from_numpy(order[start : start + self.options.batch])

    def _work(self, model):
        """Train on batches of the queue; the main function of each thread."""
        try:
            optimizer = OPTIMIZERS[self.options.optimizer](model.parameters(), self.options.lr)

            def step(images, classes):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), classes)
                loss.backward()
                optimizer.step()
                return loss

            if self.options.compile:
                step = cygrad.compile(step)
            with cygrad.threads(1):  # operations use no further threads
                while not self.stop.is_set():
                    with self._lock:
                        batch = next(self._supply, None)
                    if batch is None:
                        return
                    loss = step(self.images[batch], self.classes[batch])
                    with self._lock:
                        self.losses.append(loss.item())
                        self.done += len(batch)
        except BaseException as error:  # reported by the main thread
            self.error = error
            self.stop.set()

    def run(self, title):
        """Train; the main thread shows progress and handles Ctrl-C."""
        threads = [threading.Thread(target=self._work, args=(model,), daemon=True) for model in self.replicas]
        begin = time.perf_counter()
        with tqdm(total=self.total, desc=title, unit=" images", unit_scale=True, file=sys.stderr) as bar:
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    while thread.is_alive():
                        thread.join(0.05)
                        bar.update(self.done - bar.n)
                self.seconds = time.perf_counter() - begin
            finally:
                self.stop.set()
                for thread in threads:
                    if thread.ident is not None:
                        thread.join()
        if self.error is not None:
            raise self.error
        return self


def accuracy(model, images, classes):
    """Return the accuracy."""
    model.eval()
    with cygrad.no_grad():
        right = (model(images).argmax(1) == classes).sum().item()
    model.train()
    return right / len(images)


def draw_losses(runs, path):
    """Draw the mean loss of the last 50 batches of each run."""
    figure, axes = plt.subplots(figsize=(8, 5))
    for title, training in runs.items():
        losses = np.array(training.losses)
        window = min(50, len(losses))
        smooth = np.convolve(losses, np.full(window, 1 / window), mode="valid")
        axes.plot(np.arange(window, window + len(smooth)), smooth, label=title, linewidth=1)
    axes.set(xlabel="step", ylabel="cross entropy of the training batches", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_graph(model, images, classes, path):
    """Write the graph of one batch, from the weights to the loss."""
    loss = nn.functional.cross_entropy(model(images), classes)
    path.write_text(to_svg(loss, {**dict(model.named_parameters()), "loss": loss}))


def ways(threads):
    """Return (title, threads that take batches, parts of a batch) of each run."""
    yield "1 thread", 1, 1
    if threads > 1:
        yield f"{threads} threads (Hogwild)", threads, 1
        yield f"{threads} threads (DataParallel)", 1, threads


def main():
    """Train in all modes, compare and draw."""
    options = arguments()
    train_images, test_images, train_classes, test_classes = load(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    runs, results = {}, []
    for title, n_threads, n_parts in ways(options.threads):
        cygrad.manual_seed(options.seed)  # the same initial weights in all runs
        model = network()
        if not runs:
            first = slice(0, options.batch)
            draw_graph(model, train_images[first], train_classes[first], options.out / "graph.svg")
        whole = nn.DataParallel(model, n_parts) if n_parts > 1 else model
        runs[title] = Training(whole, train_images, train_classes, options, n_threads).run(title)
        results.append((title, runs[title].total / runs[title].seconds, accuracy(model, test_images, test_classes)))
    print(f"\n{'':26}{'images/s':>12}{'test accuracy':>16}")
    for title, speed, share in results:
        print(f"{title:26}{speed:12,.0f}{share:15.1%}")
    draw_losses(runs, options.out / "losses.png")
    print(f"\nloss curves: {options.out / 'losses.png'}\ngraph of the first batch: {options.out / 'graph.svg'}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
