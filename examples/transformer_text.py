"""
A small character transformer learns Python's license and generates text.

Writes the loss curve (transformer_text.png) into the folder given by --out.
Needs matplotlib and tqdm: ``pip install cygrad[examples]``.
"""

import os
import signal

# Exit immediately on Ctrl-C during imports, without a traceback.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from models.text import CharacterTransformer  # noqa: E402
from models.text_training import run  # noqa: E402

DEFAULTS = {"steps": 800, "batch": 16, "length": 64, "size": 64, "lr": 5e-3}

if __name__ == "__main__":
    run(
        __doc__,
        DEFAULTS,
        lambda characters, options: CharacterTransformer(characters, options.length, options.size),
        "transformer_text.png",
    )
