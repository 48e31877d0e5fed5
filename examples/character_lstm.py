"""
An LSTM learns Python's license a character at a time, and goes on with it in its own words.

Writes the loss curve (character_lstm.png) into the folder given by --out.
Needs matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import os
import signal

# While modules are imported there is nothing to tidy up: leave at once, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from models.text import CharacterLSTM  # noqa: E402
from models.text_training import run  # noqa: E402

DEFAULTS = {"steps": 400, "batch": 16, "length": 64, "size": 128, "lr": 1e-2}

if __name__ == "__main__":
    run(__doc__, DEFAULTS, lambda characters, options: CharacterLSTM(characters, options.size), "character_lstm.png")
