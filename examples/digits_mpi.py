"""
Handwritten digits on several processes: each computes a part of every batch; gradients are averaged during backward.
Run ``mpiexec -n 2 python examples/digits_mpi.py``; without ``mpiexec`` it is a single process.

Rank 0 shows the progress and writes the loss curves (digits_mpi.png) into the folder given by --out.
Needs scikit-learn, matplotlib, tqdm and, for more than one process, mpi4py: ``pip install cygrad[examples,mpi]``.
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

import cygrad
from cygrad import distributed, nn, optim
from cygrad.distributed import checkpoint
from cygrad.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="number of epochs (default: 20)")
    parser.add_argument("--batch", type=int, default=32, help="images per step, over all ranks (default: 32)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--deterministic", action="store_true", help="bit-identical for a given number of ranks")
    parser.add_argument("--checkpoint", type=Path, help="resume from this file, and write it after each epoch")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args()
    if min(options.epochs, options.batch) < 1:
        parser.error("--epochs and --batch must be at least 1")
    return options


def load(seed):
    """Return images as rows of 64 numbers in [0, 1] and their classes, for training and (a quarter) for the test."""
    images, classes = load_digits(return_X_y=True)
    parts = train_test_split(
        (images / 16).astype(np.float32), classes, test_size=0.25, stratify=classes, random_state=seed
    )
    return [cygrad.from_numpy(np.ascontiguousarray(part)) for part in parts]


def train(options, rank, n_ranks):
    """Train; return mean loss and accuracy of each epoch, and images per second."""
    train_images, test_images, train_classes, test_classes = load(options.seed)
    cygrad.manual_seed(options.seed)
    layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    model = nn.parallel.DistributedDataParallel(layers, deterministic=options.deterministic)
    optimizer = optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, nesterov=True)
    sampler = DistributedSampler(train_images, seed=options.seed)
    loader = DataLoader(
        TensorDataset(train_images, train_classes), batch_size=max(1, options.batch // n_ranks), sampler=sampler
    )
    history, first = [], 0
    if options.checkpoint and options.checkpoint.exists():
        found = checkpoint.load(checkpoint_id=options.checkpoint)
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        history, first = found["history"], len(found["history"])
    begin, done = time.perf_counter(), 0
    with tqdm(
        total=(options.epochs - first) * sampler.total_size,
        unit=" images",
        unit_scale=True,
        file=sys.stderr,
        disable=rank > 0,
        desc=f"{n_ranks} rank{'s' if n_ranks > 1 else ''}",
    ) as bar:
        for epoch in range(first, options.epochs):
            sampler.set_epoch(epoch)
            total = cygrad.zeros(2)
            for images, classes in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), classes)
                loss.backward()
                optimizer.step()
                total += cygrad.tensor([loss.item() * len(images), len(images)])
                done += len(images) * n_ranks
                bar.update(len(images) * n_ranks)
            distributed.all_reduce(total)
            with cygrad.no_grad():
                share = (layers(test_images).argmax(1) == test_classes).float().mean().item()
            history.append([(total[0] / total[1]).item(), share])
            if options.checkpoint:
                checkpoint.save(
                    {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history},
                    checkpoint_id=options.checkpoint,
                )
    return history, done / (time.perf_counter() - begin)


def draw(history, n_ranks, path):
    """Draw loss and accuracy of each epoch."""
    figure, left = plt.subplots(figsize=(8, 5))
    passes = np.arange(1, len(history) + 1)
    left.plot(passes, [loss for loss, _ in history], color="C0")
    left.set(xlabel=f"pass over the data, on {n_ranks} ranks", yscale="log")
    left.set_ylabel("cross entropy in training", color="C0")
    right = left.twinx()
    right.plot(passes, [100 * share for _, share in history], color="C1")
    right.set_ylabel("test accuracy, %", color="C1")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    """Train on all ranks; rank 0 prints and draws."""
    options = arguments()
    distributed.init_process_group("mpi")
    rank, n_ranks = distributed.get_rank(), distributed.get_world_size()
    history, speed = train(options, rank, n_ranks)
    if rank == 0:
        options.out.mkdir(parents=True, exist_ok=True)
        draw(history, n_ranks, options.out / "digits_mpi.png")
        print(
            f"{n_ranks} ranks, {speed:,.0f} images/s, loss {history[-1][0]:.4f}, test accuracy {history[-1][1]:.1%}\n"
            f"curves: {options.out / 'digits_mpi.png'}"
        )
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
