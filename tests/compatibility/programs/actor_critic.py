"""Advantage actor-critic on a walk through a small grid, several walkers at a time."""

import argparse
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical
from torch.nn.utils import clip_grad_norm_


class Step(NamedTuple):
    log_prob: torch.Tensor
    value: torch.Tensor
    reward: torch.Tensor
    going: torch.Tensor
    entropy: torch.Tensor


class Grid:
    """Find the corner of a grid; each step costs a little. All walkers are moved at once."""

    MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, walkers, size, device):
        self.walkers, self.size, self.device = walkers, size, device
        self.places = torch.zeros(walkers, 2, dtype=torch.long, device=device)

    def observe(self):
        return F.one_hot(self.places, self.size).flatten(1).float()

    def step(self, actions):
        self.places = (self.places + self.MOVES[actions]).clamp_(0, self.size - 1)
        done = (self.places == self.size - 1).all(dim=1)
        reward = torch.where(done, torch.tensor(1.0), torch.tensor(-0.05))
        self.places = self.places.masked_fill(done.unsqueeze(1), 0)
        return reward, (~done).float()


class ActorCritic(nn.Module):
    def __init__(self, inputs, hidden=32, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)
        for layer in self.body:
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, 2 ** 0.5)
                nn.init.constant_(layer.bias, 0.0)

    def forward(self, x):
        x = self.body(x)
        return Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


def rollout(env, model, steps):
    history = []
    for _ in range(steps):
        policy, value = model(env.observe())
        action = policy.sample()
        reward, going = env.step(action)
        history.append(Step(policy.log_prob(action), value, reward, going, policy.entropy()))
    with torch.no_grad():
        _, last = model(env.observe())
    return history, last


def losses(history, last, gamma, lam):
    advantage, advantages, following = torch.zeros_like(last), [], last
    for step in reversed(history):
        delta = step.reward + gamma * following * step.going - step.value.detach()
        advantage = delta + gamma * lam * step.going * advantage
        advantages.insert(0, advantage)
        following = step.value.detach()
    advantages = torch.stack(advantages)
    values = torch.stack([step.value for step in history])
    log_probs = torch.stack([step.log_prob for step in history])
    returns = advantages + values.detach()
    normalized = (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-8)
    entropy = torch.stack([step.entropy for step in history]).mean()
    return -(log_probs * normalized).mean(), F.smooth_l1_loss(values, returns), entropy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--walkers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--lam", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--save", default=None)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env = Grid(args.walkers, 5, args.device)
    model = ActorCritic(10).to(args.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, eps=1e-5, alpha=0.99)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / args.updates)
    for update in range(args.updates):
        history, last = rollout(env, model, args.steps)
        policy_loss, value_loss, entropy = losses(history, last, args.gamma, args.lam)
        loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        scheduler.step()
        if update % 4 == 3:
            reward = torch.stack([step.reward for step in history]).mean().item()
            print(f"update {update + 1}: policy {policy_loss.item():.5f} value {value_loss.item():.5f} "
                  f"entropy {entropy.item():.5f} norm {norm.item():.5f} reward {reward:.4f}")
    if args.save:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "updates": args.updates},
                   args.save)
        restored = ActorCritic(10)
        restored.load_state_dict(torch.load(args.save, map_location="cpu")["model"])


if __name__ == "__main__":
    main()
