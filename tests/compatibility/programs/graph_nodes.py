"""Nodes of a graph classified by a graph convolutional or a graph attention network; labels of few nodes are known."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_graph(n=150, classes=3, features=16, seed=0):
    """Communities: within them edges are likely, and features are alike."""
    rng = np.random.RandomState(seed)
    labels = np.arange(n) % classes
    chance = np.where(labels[:, None] == labels[None, :], 0.08, 0.01)
    edges = np.triu(rng.rand(n, n) < chance, 1)
    x = rng.randn(classes, features)[labels] * 0.6 + rng.randn(n, features)
    source, target = np.nonzero(edges | edges.T | np.eye(n, dtype=bool))
    return (torch.tensor(x, dtype=torch.float32), torch.from_numpy(np.stack([source, target])).long(),
            torch.from_numpy(labels).long())


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = nn.Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / self.weight.size(1) ** 0.5
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, edges):
        source, target = edges
        degree = torch.zeros(x.size(0)).scatter_add_(0, target, torch.ones(target.size(0)))
        norm = degree[source].rsqrt() * degree[target].rsqrt()
        support = torch.mm(x, self.weight)
        output = torch.zeros_like(support).index_add(0, target, norm.unsqueeze(-1) * support[source])
        return output + self.bias if self.bias is not None else output


class GraphAttention(nn.Module):
    def __init__(self, in_features, out_features, heads=2, concat=True, dropout=0.2):
        super().__init__()
        self.heads, self.out, self.concat, self.dropout = heads, out_features, concat, dropout
        self.linear = nn.Linear(in_features, heads * out_features, bias=False)
        self.source = nn.Parameter(torch.empty(1, heads, out_features))
        self.target = nn.Parameter(torch.empty(1, heads, out_features))
        nn.init.xavier_uniform_(self.linear.weight, gain=nn.init.calculate_gain("relu"))
        nn.init.xavier_uniform_(self.source)
        nn.init.xavier_uniform_(self.target)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        h = self.linear(x).view(-1, self.heads, self.out)
        score = (h * self.source).sum(-1)[source] + (h * self.target).sum(-1)[target]
        score = F.leaky_relu(score, 0.2)
        index = target.unsqueeze(-1).expand_as(score)
        highest = torch.full((x.size(0), self.heads), float("-inf")).scatter_reduce(0, index, score, reduce="amax")
        weight = (score - highest[target].detach()).exp()
        total = torch.zeros(x.size(0), self.heads).scatter_add(0, index, weight)
        weight = F.dropout(weight / (total[target] + 1e-16), self.dropout, training=self.training)
        out = torch.zeros_like(h).index_add_(0, target, weight.unsqueeze(-1) * h[source])
        return out.flatten(1) if self.concat else out.mean(1)


class Net(nn.Module):
    def __init__(self, kind, features, hidden, classes, dropout):
        super().__init__()
        if kind == "gcn":
            self.layers = nn.ModuleList([GraphConvolution(features, hidden), GraphConvolution(hidden, classes)])
        else:
            self.layers = nn.ModuleList([GraphAttention(features, hidden // 2),
                                         GraphAttention(hidden, classes, concat=False)])
        self.dropout = dropout

    def forward(self, x, edges):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.elu(self.layers[0](x, edges))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.layers[1](x, edges), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true", default=False, help="Disables CUDA training.")
    parser.add_argument("--model", choices=["gcn", "gat"], default="gcn")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weight_decay", type=float, default=5e-4)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--output", default=None)
    args = parser.parse_args()
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    if args.cuda:
        torch.cuda.manual_seed(args.seed)

    x, edges, labels = make_graph()
    train, val, test = torch.arange(30), torch.arange(30, 90), torch.arange(90, 150)
    model = Net(args.model, x.shape[1], args.hidden, int(labels.max().item()) + 1, args.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
    best, state = float("inf"), None
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(x, edges)
        loss_train = F.nll_loss(output[train], labels[train])
        loss_train.backward()
        optimizer.step()

        model.eval()
        with torch.no_grad():
            output = model(x, edges)
        loss_val = F.nll_loss(output[val], labels[val])
        scheduler.step(loss_val)
        if loss_val < best:
            best, state = loss_val.item(), {name: value.clone() for name, value in model.state_dict().items()}
        if epoch % 5 == 4:
            print(f"Epoch: {epoch + 1:04d} loss_train: {loss_train.item():.5f} loss_val: {loss_val.item():.5f} "
                  f"acc_val: {accuracy(output[val], labels[val]).item():.3f}")
    model.load_state_dict(state)
    model.eval()
    output = model(x, edges)
    print(f"Test set results: loss= {F.nll_loss(output[test], labels[test]).item():.5f} "
          f"accuracy= {accuracy(output[test], labels[test]).item():.3f}")
    if args.output:
        torch.save({"args": vars(args), "state": state}, f"{args.output}/graph.pt")


if __name__ == "__main__":
    main()
