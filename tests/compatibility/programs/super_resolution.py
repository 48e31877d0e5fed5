"""Super-resolution by a sub-pixel convolutional network, on made-up images of waves."""

import argparse
from math import log10

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="Super resolution example")
parser.add_argument("--upscale_factor", type=int, default=2, help="super resolution upscale factor")
parser.add_argument("--batchSize", type=int, default=16, help="training batch size")
parser.add_argument("--testBatchSize", type=int, default=16)
parser.add_argument("--nEpochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--cuda", action="store_true", help="use cuda?")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--seed", type=int, default=123)
parser.add_argument("--output", default=None)
opt = parser.parse_args()

if opt.cuda and not torch.cuda.is_available():
    raise Exception("No GPU found, please run without --cuda")
torch.manual_seed(opt.seed)
device = torch.device("cuda" if opt.cuda else "cpu")


class Waves(Dataset):
    def __init__(self, count, size, factor, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        facts = torch.rand(count, 4, generator=generator)
        y, x = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 1, size), indexing="ij")
        phase = 20 * facts[:, 0, None, None] * x + 20 * facts[:, 1, None, None] * y + 6 * facts[:, 2, None, None]
        self.large = (torch.sin(phase) * facts[:, 3, None, None] * 0.5 + 0.5).unsqueeze(1)
        self.small = F.interpolate(self.large, scale_factor=1 / factor, mode="bilinear", align_corners=False)

    def __getitem__(self, index):
        return self.small[index], self.large[index]

    def __len__(self):
        return len(self.large)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        x = self.pixel_shuffle(self.conv4(x))
        return x

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)


train_set, test_set = Waves(96, 24, opt.upscale_factor, 0), Waves(32, 24, opt.upscale_factor, 1)
training_data_loader = DataLoader(dataset=train_set, num_workers=opt.threads, batch_size=opt.batchSize, shuffle=True)
testing_data_loader = DataLoader(dataset=test_set, num_workers=opt.threads, batch_size=opt.testBatchSize, shuffle=False)
model = Net(upscale_factor=opt.upscale_factor).to(device)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=opt.lr)
scheduler = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=opt.nEpochs, power=0.9)


def train(epoch):
    epoch_loss = 0
    for iteration, batch in enumerate(training_data_loader, 1):
        input, target = batch[0].to(device), batch[1].to(device)
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        print(f"===> Epoch[{epoch}]({iteration}/{len(training_data_loader)}): Loss: {loss.item():.5f}")
    print(f"===> Epoch {epoch} Complete: Avg. Loss: {epoch_loss / len(training_data_loader):.5f}")


def test():
    avg_psnr, plain = 0, 0
    with torch.no_grad():
        for batch in testing_data_loader:
            input, target = batch[0].to(device), batch[1].to(device)
            avg_psnr += 10 * log10(1 / criterion(model(input), target).item())
            bicubic = F.interpolate(input, scale_factor=opt.upscale_factor, mode="bicubic", align_corners=False)
            plain += 10 * log10(1 / criterion(bicubic.clamp(0, 1), target).item())
    n = len(testing_data_loader)
    print(f"===> Avg. PSNR: {avg_psnr / n:.3f} dB, bicubic: {plain / n:.3f} dB")


for epoch in range(1, opt.nEpochs + 1):
    train(epoch)
    test()
    scheduler.step()
    if opt.output:
        torch.save(model.state_dict(), f"{opt.output}/model_epoch_{epoch}.pth")
