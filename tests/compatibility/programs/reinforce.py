"""REINFORCE on a pole that is to be kept upright."""

import argparse
import math
from collections import deque
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Pole:
    """A pole on a cart."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)

    def reset(self):
        self.state = self.random.uniform(-0.05, 0.05, size=4)
        return self.state.astype(np.float32)

    def step(self, action):
        x, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * turn ** 2 * math.sin(angle)) / 1.1
        turning = (9.8 * math.sin(angle) - math.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        pushed = push - 0.05 * turning * math.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * speed, speed + 0.02 * pushed, angle + 0.02 * turn, turn + 0.02 * turning])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state.astype(np.float32), 1.0, bool(done)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.dropout = nn.Dropout(p=0.1)
        self.affine2 = nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        action_scores = self.affine2(x)
        return F.softmax(action_scores, dim=1)


def select_action(policy, state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    m = Categorical(policy(state))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(policy, optimizer, gamma, eps):
    R = 0
    policy_loss = []
    returns = deque()
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gamma", type=float, default=0.99, metavar="G")
    parser.add_argument("--seed", type=int, default=543, metavar="N")
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--output", default=None)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env = Pole(args.seed)
    policy = Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[6, 9], gamma=0.5)
    eps = np.finfo(np.float32).eps.item()
    running_reward = 10
    for i_episode in range(1, args.episodes + 1):
        state, ep_reward = env.reset(), 0
        for _ in count(1):
            action = select_action(policy, state)
            state, reward, done = env.step(action)
            policy.rewards.append(reward)
            ep_reward += reward
            if done or ep_reward >= 200:
                break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        loss = finish_episode(policy, optimizer, args.gamma, eps)
        scheduler.step()
        print(f"Episode {i_episode}\tLast reward: {ep_reward:.2f}\tAverage reward: {running_reward:.2f}\t"
              f"Loss: {loss:.4f}")
    if args.output:
        torch.save(policy.state_dict(), f"{args.output}/policy.pt")


if __name__ == "__main__":
    main()
