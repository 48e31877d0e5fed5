"""Style transfer: an image is changed until its features are those of one image, and their correlations another's."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--size", type=int, default=32)
parser.add_argument("--style-weight", type=float, default=1e4)
parser.add_argument("--content-weight", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--output", default=None)
args = parser.parse_args()
torch.manual_seed(args.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_dtype(torch.float32)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def images(size):
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    disc = torch.sigmoid(10 * (0.6 - (x ** 2 + y ** 2).sqrt()))
    content = torch.stack([disc, 1 - disc, 0.5 * disc]).unsqueeze(0)
    stripes = torch.stack([0.5 + 0.5 * torch.sin(k * x + 8 * y) for k in (4, 8, 16)]).unsqueeze(0)
    return content, stripes


def get_style_model_and_losses(cnn, mean, std, style_img, content_img):
    content_losses, style_losses = [], []
    model = nn.Sequential(Normalization(mean, std))
    i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = f"conv_{i}"
        elif isinstance(layer, nn.ReLU):
            name = f"relu_{i}"
            layer = nn.ReLU(inplace=False)
        elif isinstance(layer, nn.AvgPool2d):
            name = f"pool_{i}"
        else:
            raise RuntimeError(f"Unrecognized layer: {layer.__class__.__name__}")
        model.add_module(name, layer)
        if name == "conv_3":
            target = model(content_img).detach()
            content_loss = ContentLoss(target)
            model.add_module(f"content_loss_{i}", content_loss)
            content_losses.append(content_loss)
        if name in ("conv_1", "conv_2", "conv_3"):
            target_feature = model(style_img).detach()
            style_loss = StyleLoss(target_feature)
            model.add_module(f"style_loss_{i}", style_loss)
            style_losses.append(style_loss)
    return model, style_losses, content_losses


features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, 16, 3, padding=1),
                         nn.ReLU(inplace=True), nn.AvgPool2d(2, 2), nn.Conv2d(16, 16, 3, padding=1)).to(device).eval()
content_img, style_img = (image.to(device) for image in images(args.size))
input_img = content_img.clone()
model, style_losses, content_losses = get_style_model_and_losses(
    copy.deepcopy(features), torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225]), style_img,
    content_img)
input_img.requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer = optim.LBFGS([input_img], max_iter=5)
print("Optimizing..")
run = [0]
while run[0] <= args.steps:
    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(sl.loss for sl in style_losses) * args.style_weight
        content_score = sum(cl.loss for cl in content_losses) * args.content_weight
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        if run[0] % 5 == 0:
            print(f"run {run[0]}: Style Loss : {style_score.item():.4f} Content Loss: {content_score.item():.4f}")
        return style_score + content_score
    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
print(f"mean of channels: {[round(value, 3) for value in input_img.mean(dim=(0, 2, 3)).tolist()]}")
if args.output:
    torch.save(input_img, f"{args.output}/image.pt")
