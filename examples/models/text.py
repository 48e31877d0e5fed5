"""A text that ships with Python, encoded as integers, and two models that predict its next character."""

import builtins
import math
import sys
import sysconfig
from pathlib import Path

import numpy as np

import cygrad
from cygrad import nn

__all__ = ["CharacterLSTM", "CharacterTransformer", "Text", "generate", "license"]


def license():
    """
    The text of Python's license; where it was not installed, what Python knows about its own keywords.

    Returns
    -------
    str
    """
    places = [Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix)]
    for place in places:
        for name in ("LICENSE.txt", "LICENSE"):
            if (place / name).is_file():
                return (place / name).read_text(encoding="utf-8")
    import pydoc_data.topics

    return str(builtins.copyright) + "\n" + "\n".join(pydoc_data.topics.topics.values())[:14000]


class Text:
    """
    A text as numbers of characters; its end is kept for the test.

    Parameters
    ----------
    text : str
    length : int
        Of the pieces that models see.
    held_out : float, default 0.1
        The part at the end that is not for training.
    """

    def __init__(self, text, length, held_out=0.1):
        self.characters = sorted(set(text))
        numbers = np.array([self.characters.index(character) for character in text])
        kept = int(len(numbers) * held_out)
        self.train, self.test = numbers[:-kept], numbers[-kept:]
        self.length = length
        if len(self.test) <= length:
            raise ValueError(f"Text: the text is too short for pieces of {length} characters (got {len(text)}).")

    def batches(self, batch, steps, random):
        """Return random sequences (batch, length) of the training part, and the following characters."""
        for _ in range(steps):
            starts = random.integers(0, len(self.train) - self.length, batch)
            yield self._pieces(self.train, starts)

    def test_pieces(self):
        """Yield all sequences of the test part."""
        return self._pieces(self.test, range(0, len(self.test) - self.length, self.length))

    def _pieces(self, numbers, starts):
        pieces = np.stack([numbers[start : start + self.length + 1] for start in starts])
        return cygrad.from_numpy(pieces[:, :-1].copy()), cygrad.from_numpy(pieces[:, 1:].copy())


class CharacterLSTM(nn.Module):
    """
    Characters through an LSTM.

    Parameters
    ----------
    characters : int
        How many there are.
    size : int, default 128
        Of the hidden state.
    layers : int, default 1
    """

    def __init__(self, characters, size=128, layers=1):
        super().__init__()
        self.embedding = nn.Embedding(characters, size)
        self.lstm = nn.LSTM(size, size, layers, batch_first=True)
        self.head = nn.Linear(size, characters)

    def forward(self, numbers):
        """Map shape (batch, length) to scores (batch, length, characters)."""
        return self.head(self.lstm(self.embedding(numbers))[0])


class CharacterTransformer(nn.Module):
    """
    Characters through a transformer that only looks back.

    Parameters
    ----------
    characters : int
        How many there are.
    length : int
        Of the longest piece.
    size : int, default 64
        Of the features.
    heads, layers : int, default 4 and 2
    """

    def __init__(self, characters, length, size=64, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(characters, size)
        self.position = nn.Parameter(cygrad.randn(length, size) * 0.1)
        layer = nn.TransformerEncoderLayer(
            size, heads, 4 * size, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(size), enable_nested_tensor=False)
        self.head = nn.Linear(size, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, numbers):
        """Map shape (batch, length) to scores (batch, length, characters)."""
        length = numbers.shape[1]
        features = self.embedding(numbers) + self.position[:length]
        return self.head(self.encoder(features, mask=self.mask[:length, :length], is_causal=True))


def generate(model, text, beginning, count, temperature, random):
    """
    Go on from a beginning, a character at a time.

    Parameters
    ----------
    model : Module
    text : Text
    beginning : str
    count : int
        How many characters.
    temperature : float
        The lower, the more likely the likely ones.
    random : numpy.random.Generator

    Returns
    -------
    str
    """
    numbers = [text.characters.index(character) for character in beginning if character in text.characters]
    with cygrad.no_grad():
        for _ in range(count):
            scores = model(cygrad.tensor([numbers[-text.length :]]))[0, -1].tolist()
            highest = max(scores)
            weights = np.array([math.exp((score - highest) / temperature) for score in scores])
            numbers.append(int(random.choice(len(weights), p=weights / weights.sum())))
    return "".join(text.characters[number] for number in numbers)
