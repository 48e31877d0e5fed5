"""A character-level language model, an LSTM or a transformer, that learns a nursery rhyme and continues it."""

import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

TEXT = """twinkle twinkle little star how i wonder what you are up above the world so high like a diamond in the sky
when the blazing sun is gone when he nothing shines upon then you show your little light twinkle twinkle all the night
then the traveller in the dark thanks you for your tiny spark he could not see which way to go if you did not twinkle so
"""


class Corpus:
    def __init__(self, text):
        self.characters = sorted(set(text))
        self.index = {character: number for number, character in enumerate(self.characters)}
        self.data = self.encode(text)

    def encode(self, text):
        return torch.tensor([self.index[character] for character in text], dtype=torch.long)

    def decode(self, numbers):
        return "".join(self.characters[number] for number in numbers)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=256):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[:, :x.size(1)])


class TransformerModel(nn.Module):
    def __init__(self, n_tokens, dropout, size=32, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, size)
        self.position = PositionalEncoding(size, dropout)
        layer = nn.TransformerEncoderLayer(size, heads, 64, dropout=dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(size), enable_nested_tensor=False)
        self.decoder = nn.Linear(size, n_tokens)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, tokens, state=None):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1), device=tokens.device)
        x = self.position(self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim))
        return self.decoder(self.encoder(x, mask=mask, is_causal=True)), None


class LSTMModel(nn.Module):
    def __init__(self, n_tokens, dropout, size=48, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, 16)
        self.rnn = nn.LSTM(16, size, layers, dropout=dropout, batch_first=True)
        self.decoder = nn.Linear(size, n_tokens)

    def forward(self, tokens, state=None):
        output, state = self.rnn(self.embedding(tokens), state)
        return self.decoder(output), state


def get_batch(data, batch_size, length):
    starts = torch.randint(len(data) - length - 1, (batch_size,))
    x = torch.stack([data[start:start + length] for start in starts])
    y = torch.stack([data[start + 1:start + length + 1] for start in starts])
    return x, y


@torch.no_grad()
def generate(model, corpus, prompt, length, temperature, top_k, window):
    model.eval()
    tokens, state = corpus.encode(prompt).unsqueeze(0), None
    if isinstance(model, LSTMModel):
        output, state = model(tokens[:, :-1])
    for _ in range(length):
        shown = tokens[:, -1:] if isinstance(model, LSTMModel) else tokens[:, -window:]
        output, state = model(shown, state)
        logits = output[:, -1, :] / temperature
        kept, _ = torch.topk(logits, top_k)
        logits[logits < kept[:, [-1]]] = -float("inf")
        tokens = torch.cat((tokens, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
    return corpus.decode(tokens[0].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["LSTM", "Transformer"], default="LSTM")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--bptt", type=int, default=32, help="sequence length")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--clip", type=float, default=0.25, help="gradient clipping")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1111)
    parser.add_argument("--save", default=None)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    corpus = Corpus(TEXT)
    kind = LSTMModel if args.model == "LSTM" else TransformerModel
    model = kind(len(corpus.characters), args.dropout).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=args.steps)
    start = time.time()
    for step in range(args.steps):
        model.train()
        x, y = (part.to(device) for part in get_batch(corpus.data, args.batch_size, args.bptt))
        output, _ = model(x)
        loss = F.cross_entropy(output.view(-1, output.size(-1)), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        scheduler.step()
        if step % 10 == 9:
            print(f"| step {step + 1:4d} | lr {scheduler.get_last_lr()[0]:.5f} | norm {norm:.4f} "
                  f"| loss {loss.item():.5f} | ppl {math.exp(loss.item()):.4f}")
    print(f"time: {time.time() - start:.2f} s")
    if args.save:
        torch.save(model, args.save)
        model = torch.load(args.save, weights_only=False)
    print(generate(model, corpus, "twinkle ", 40, 0.8, 5, args.bptt))


if __name__ == "__main__":
    main()
