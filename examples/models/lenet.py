"""LeNet-5 for images of 28 x 28 (LeCun, Bottou, Bengio and Haffner, 1998), with ReLU and max pooling."""

from cygrad import nn

__all__ = ["LeNet"]


class LeNet(nn.Module):
    """
    Two convolutions, each with pooling, and three linear layers.

    Parameters
    ----------
    num_classes : int, default 10
    """

    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, images):
        """Map shape (batch, 1, 28, 28) to (batch, num_classes)."""
        functional = nn.functional
        x = functional.max_pool2d(functional.relu(self.conv1(images)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))
