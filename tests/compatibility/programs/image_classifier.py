"""Digits, classified by a small convolutional network: augmentation, a schedule with warm-up, checkpoints, resuming."""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, Dataset, Subset


class Digits(Dataset):
    def __init__(self, transform=None):
        images, labels = load_digits(return_X_y=True)
        self.images = torch.from_numpy(images.reshape(-1, 1, 8, 8).astype(np.float32) / 16)
        self.labels = torch.from_numpy(labels.astype(np.int64))
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class RandomShift:
    """Shift by up to a pixel, and add a little noise."""

    def __init__(self, pixels=1, noise=0.02):
        self.pixels, self.noise = pixels, noise

    def __call__(self, image):
        padded = F.pad(image, [self.pixels] * 4)
        top, left = (random.randint(0, 2 * self.pixels) for _ in range(2))
        image = padded[:, top:top + image.shape[1], left:left + image.shape[2]]
        return image + self.noise * torch.randn_like(image)


class Block(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1) if channels_in != channels_out else nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class Net(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.features = nn.Sequential(Block(1, 8), nn.MaxPool2d(2), Block(8, 16), nn.AdaptiveAvgPool2d(2))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, n_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.classifier(self.features(x))


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * images.size(0)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total, correct = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        output = model(images)
        total += criterion(output, labels).item() * images.size(0)
        correct += (output.argmax(dim=1) == labels).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default=None, help="folder for checkpoints")
    parser.add_argument("--resume", default=None)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set = Subset(Digits(RandomShift()), range(1200))
    test_set = Subset(Digits(), range(1200, 1797))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=256)

    model = Net().to(device)
    print(f"{sum(p.numel() for p in model.parameters() if p.requires_grad)} parameters on {device}")
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 0.5, total_iters=1),
                                         CosineAnnealingLR(optimizer, args.epochs)], milestones=[1])
    start = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        start = checkpoint["epoch"] + 1

    best = 0.0
    for epoch in range(start, args.epochs):
        loss = train_epoch(model, train_loader, criterion, optimizer, device)
        test_loss, accuracy = evaluate(model, test_loader, criterion, device)
        print(f"epoch {epoch}  lr {optimizer.param_groups[0]['lr']:.5f}  loss {loss:.6f}  test {test_loss:.6f}")
        scheduler.step()
        best = max(best, accuracy)
        if args.output:
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict(), "best": best},
                       os.path.join(args.output, "checkpoint.pt"))
    print(f"best accuracy {best:.2f}")


if __name__ == "__main__":
    main()
