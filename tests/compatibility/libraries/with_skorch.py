"""skorch: a classifier and a regressor as estimators of scikit-learn, with a grid search and saved parameters."""

import os

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
X, y = make_classification(200, 10, n_informative=5, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.first = nn.Linear(10, hidden)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(hidden, 2)

    def forward(self, X):
        return torch.softmax(self.last(self.drop(torch.relu(self.first(X)))), -1)


net = NeuralNetClassifier(
    Net, max_epochs=4, lr=0.1, optimizer=torch.optim.Adam, iterator_train__shuffle=True, verbose=0,
    callbacks=[LRScheduler(policy="StepLR", step_size=2), EpochScoring("roc_auc", lower_is_better=False)])
net.fit(X, y)
print("train", *net.history[:, "train_loss"])
print("valid", *net.history[:, "valid_loss"])
print("chances", *net.predict_proba(X[:3]).ravel().tolist())

pipeline = Pipeline([("scale", StandardScaler()),
                     ("net", NeuralNetClassifier(Net, max_epochs=2, verbose=0, train_split=None))])
search = GridSearchCV(pipeline, {"net__lr": [0.05, 0.5], "net__module__hidden": [4, 8]}, cv=2, scoring="accuracy")
search.fit(X, y)
print("best", search.best_params_, search.best_score_)

net.save_params(f_params="parameters.pt", f_optimizer="optimizer.pt")
again = NeuralNetClassifier(Net, optimizer=torch.optim.Adam).initialize()
again.load_params(f_params="parameters.pt", f_optimizer="optimizer.pt")
print("loaded", np.allclose(again.predict_proba(X), net.predict_proba(X)), os.path.exists("parameters.pt"))

linear = NeuralNetRegressor(nn.Linear(10, 1), criterion=nn.MSELoss, max_epochs=3, lr=0.05, verbose=0,
                            train_split=None)
print("regression", *linear.fit(X, X[:, :1]).history[:, "train_loss"])
