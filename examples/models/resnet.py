"""
Residual networks with 18 and 34 layers (He, Zhang, Ren and Sun, 2015).

Names of parameters are those that weights of such networks usually come with: conv1, bn1, layer1.0.conv1, ..., fc.
"""

from cygrad import nn

__all__ = ["BasicBlock", "ResNet", "resnet18", "resnet34"]


class BasicBlock(nn.Module):
    """
    Two convolutions, whose result is added to their input.

    Parameters
    ----------
    in_channels, out_channels : int
    stride : int, default 1
        Of the first convolution. Where the block changes the shape, the input goes through a convolution with kernels
        of one element.
    """

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), nn.BatchNorm2d(out_channels)
            )

    def forward(self, input):
        """Map shape (batch, in_channels, height, width) to (batch, out_channels, height / stride, width / stride)."""
        shortcut = input if self.downsample is None else self.downsample(input)
        inner = self.relu(self.bn1(self.conv1(input)))
        return self.relu(self.bn2(self.conv2(inner)) + shortcut)


class ResNet(nn.Module):
    """
    A residual network for images.

    Parameters
    ----------
    layers : sequence of int
        Blocks in each of the four stages.
    num_classes : int, default 1000
    width : int, default 64
        Channels of the first stage; each of the others has twice those of the one before.
    in_channels : int, default 3
        Channels of the images.
    """

    def __init__(self, layers, num_classes=1000, width=64, in_channels=3):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = width
        for number, blocks in enumerate(layers):
            out_channels = width << number
            stage = [
                BasicBlock(channels if block == 0 else out_channels, out_channels, 2 if number and block == 0 else 1)
                for block in range(blocks)
            ]
            setattr(self, f"layer{number + 1}", nn.Sequential(*stage))
            channels = out_channels
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, num_classes)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize kernels so that the variance of activations is preserved."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images):
        """Map shape (batch, in_channels, height, width) to (batch, num_classes)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(num_classes=1000, **options):
    """Return the network with 18 layers."""
    return ResNet((2, 2, 2, 2), num_classes, **options)


def resnet34(num_classes=1000, **options):
    """Return the network with 34 layers."""
    return ResNet((3, 4, 6, 3), num_classes, **options)
