"""Forecasts of a seasonal series by a GRU with attention over what it has seen, with early stopping."""

import argparse
import math
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class EarlyStopping:
    def __init__(self, patience, path):
        self.patience, self.path = patience, path
        self.best, self.waited = math.inf, 0

    def __call__(self, loss, model):
        if loss < self.best:
            self.best, self.waited = loss, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.waited += 1
        return self.waited >= self.patience


class Forecaster(nn.Module):
    def __init__(self, hidden=24, horizon=4):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, kernel_size=3, padding=2, dilation=2)
        self.gru = nn.GRU(8, hidden, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(2 * hidden, 4, batch_first=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.SiLU(), nn.Linear(hidden, horizon))

    def forward(self, x):
        x = self.conv(x.unsqueeze(1)).relu().transpose(1, 2)
        hidden, _ = self.gru(x)
        seen, weights = self.attention(hidden[:, -1:], hidden, hidden)
        return self.head(self.norm(seen + hidden[:, -1:]).squeeze(1)), weights


def windows(length, window, horizon):
    time = torch.arange(length, dtype=torch.float32)
    series = torch.sin(time / 6) + 0.5 * torch.cos(time / 17) + 0.1 * torch.randn(length)
    series = (series - series.mean()) / series.std()
    frames = series.unfold(0, window + horizon, 1)
    return TensorDataset(frames[:, :window], frames[:, window:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--window", type=int, default=24)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", default=tempfile.gettempdir())
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, valid = random_split(windows(500, args.window, 4), [0.8, 0.2], generator=torch.Generator().manual_seed(42))
    train_loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid, batch_size=len(valid))
    model = Forecaster().to(device)
    decay = [p for p in model.parameters() if p.dim() > 1]
    no_decay = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.NAdam([{"params": decay, "weight_decay": 1e-4}, {"params": no_decay}], lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 1e-3, 4e-3, step_size_up=8, cycle_momentum=False)
    criterion = nn.HuberLoss(delta=0.5)
    path = os.path.join(args.output, f"forecaster-{os.getpid()}.pt")
    stopping = EarlyStopping(2, path)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for x, y in train_loader:
            optimizer.zero_grad()
            forecast, _ = model(x.to(device))
            loss = criterion(forecast, y.to(device))
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())
        model.eval()
        with torch.no_grad():
            x, y = next(iter(valid_loader))
            forecast, weights = model(x.to(device))
            valid_loss = criterion(forecast, y.to(device)).item()
            error = (forecast - y).abs().mean(dim=0)
        print(f"epoch {epoch}: train {torch.stack(losses).mean():.5f} valid {valid_loss:.5f} "
              f"errors {' '.join(f'{e:.4f}' for e in error)} attention {weights.max().item():.4f}")
        if stopping(valid_loss, model):
            print("early stop")
            break
    model.load_state_dict(torch.load(path, weights_only=True))
    os.remove(path)
    with torch.no_grad():
        print(f"best {criterion(model(x)[0], y).item():.5f}")


if __name__ == "__main__":
    main()
