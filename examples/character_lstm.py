"""
A character LSTM learns Python's license and generates text.

Writes the loss curve (character_lstm.png) into the folder given by --out.
Needs matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import os
import signal

# Exit immediately on Ctrl-C during imports, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from models.text import CharacterLSTM  # noqa: E402
from models.text_training import run  # noqa: E402

DEFAULTS = {"steps": 400, "batch": 16, "length": 64, "size": 128, "lr": 1e-2}

if __name__ == "__main__":
    run(__doc__, DEFAULTS, lambda characters, options: CharacterLSTM(characters, options.size), "character_lstm.png")
