"""A siamese network that learns whether two digits are the same, with a contrastive loss."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3), nn.PReLU(), nn.MaxPool2d(2, stride=1),
            nn.Conv2d(16, 32, kernel_size=3), nn.PReLU(), nn.Flatten(),
        )
        self.fc = nn.Sequential(nn.Linear(32 * 9, 64), nn.GELU(), nn.Linear(64, 16))
        self.register_buffer("margin", torch.tensor(margin))
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        return F.normalize(self.fc(self.encoder(x)), dim=1)

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class ContrastiveLoss(nn.Module):
    def forward(self, a, b, same, margin):
        distance = F.pairwise_distance(a, b)
        return (same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2)).mean(), distance


class Pairs(Dataset):
    def __init__(self, images, labels, count, seed):
        chooser = random.Random(seed)
        by_label = [[i for i, other in enumerate(labels) if other == label] for label in range(10)]
        self.images, self.pairs = images, []
        for number in range(count):
            first = chooser.randrange(len(labels))
            if number % 2:
                second = chooser.choice(by_label[labels[first]])
            else:
                second = chooser.choice(by_label[(labels[first] + chooser.randint(1, 9)) % 10])
            self.pairs.append((first, second, number % 2))

    def __getitem__(self, index):
        first, second, same = self.pairs[index]
        return self.images[first], self.images[second], torch.tensor(same, dtype=torch.float)

    def __len__(self):
        return len(self.pairs)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    criterion = ContrastiveLoss()
    for batch_idx, (a, b, same) in enumerate(loader):
        a, b, same = a.to(device), b.to(device), same.to(device)
        optimizer.zero_grad()
        loss, _ = criterion(*model(a, b), same, model.margin)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(loader)}]\tLoss: {loss.item():.6f}")


def test(model, device, loader):
    model.eval()
    criterion = ContrastiveLoss()
    loss, right = 0.0, 0
    with torch.inference_mode():
        for a, b, same in loader:
            a, b, same = a.to(device), b.to(device), same.to(device)
            batch_loss, distance = criterion(*model(a, b), same, model.margin)
            loss += batch_loss.item() * len(a)
            right += torch.where(distance < 0.5, 1, 0).eq(same.view_as(distance)).sum().item()
    print(f"Test set: Average loss: {loss / len(loader.dataset):.5f}, pairs right: {right / len(loader.dataset):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64, metavar="N")
    parser.add_argument("--epochs", type=int, default=3, metavar="N")
    parser.add_argument("--lr", type=float, default=0.5, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.7, metavar="M")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--log-interval", type=int, default=4, metavar="N")
    parser.add_argument("--output", default=None)
    args = parser.parse_args()
    use_cuda = torch.cuda.is_available()
    use_mps = torch.backends.mps.is_available()
    torch.manual_seed(args.seed)
    device = torch.device("cuda") if use_cuda else torch.device("mps") if use_mps else torch.device("cpu")
    kwargs = {"num_workers": 1, "pin_memory": True} if use_cuda else {}

    digits = load_digits()
    images = torch.as_tensor(digits.images, dtype=torch.float32).unsqueeze(1).div_(16)
    train_loader = DataLoader(Pairs(images, digits.target, 1024, 0), shuffle=True, batch_size=args.batch_size, **kwargs)
    test_loader = DataLoader(Pairs(images, digits.target, 256, 1), batch_size=256, **kwargs)
    model = SiameseNetwork().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
    if args.output:
        torch.save(model.state_dict(), f"{args.output}/siamese_network.pt")


if __name__ == "__main__":
    main()
