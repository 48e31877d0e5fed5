"""einops: rearranging, reducing and mixing axes, and its layers in a network that learns."""

import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
patches = rearrange(x, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=4, p2=4)
print(patches.shape, reduce(x, "b c h w -> b c", "mean").sum().item(), repeat(x[0, 0], "h w -> h w c", c=2).shape)
print(einsum(patches, patches, "b i d, b j d -> b i j").sum().item(), parse_shape(x, "b _ h w"))
net = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.ReLU(), Reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2),
    Rearrange("b c h w -> b (c h w)"), nn.Linear(36, 5))
mix = EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=4)
optimizer = torch.optim.SGD([*net.parameters(), *mix.parameters()], lr=0.05)
for step in range(3):
    optimizer.zero_grad()
    loss = net(x).square().mean() + mix(patches.detach()).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
packed, shapes = pack([x[:, 0], x[:, 1:]], "b * h w")
print(packed.shape, [part.shape for part in unpack(packed, shapes, "b * h w")], x.grad.abs().sum().item())
