"""
The paper's toy, from five lines
================================

Stochastic discriminative EM is five lines of NumPy around a model. This tutorial
writes them for the toy of the paper: two classes, one number, one Gaussian per class.
Then discem does the same in one line.
"""

# %%
# The data
# --------
# Class -1 is a broad Gaussian around 0. Class 1 is two narrow spikes: 80 % of it
# around -5, 20 % around 5. No single Gaussian fits class 1.

import matplotlib.pyplot as plt
import numpy as np
from discem import GaussianNB
from discem.datasets import toy, toy_accuracy

X, y = toy(20_000, random_state=0)
x, one_hot = X[:, 0], np.stack([y == -1, y == 1], axis=1).astype(float)

figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for label in (-1, 1):
    ax.hist(
        x[y == label], bins=np.arange(-10, 10.1, 0.1), alpha=0.6, label=f"class {label}"
    )
ax.set(xlabel="x", ylabel="rows", ylim=(0, 600))
ax.legend()

# %%
# The model and its statistics
# ----------------------------
# A Gaussian per class has three *expected statistics* per class k: the mean over all
# rows of 1, x and x squared, each counted in class k only. They are the parameters
# ``mu``. Frequency, mean and variance follow from them.

statistics = np.stack([np.ones_like(x), x, x**2], axis=1)  # one line per row


def frequency_mean_variance(mu):
    """What people call the parameters, from the expected statistics of each class."""
    frequency, first, second = mu.T
    mean = first / frequency
    return frequency, mean, second / frequency - mean**2


def log_joint(mu, values):
    """ln p(y, x): a line per row, a column per class."""
    frequency, mean, variance = frequency_mean_variance(mu)
    distance = (values[:, None] - mean) ** 2 / variance
    return np.log(frequency) - 0.5 * (np.log(2 * np.pi * variance) + distance)


def accuracy(mu):
    return np.mean(log_joint(mu, x).argmax(axis=1) == one_hot.argmax(axis=1))


# %%
# Maximum likelihood
# ------------------
# The maximum-likelihood estimate is an average: each row adds its statistics to its
# own class. This is plain naive Bayes. It describes each class as well as a Gaussian
# can, and it classifies badly.

plain = one_hot.T @ statistics / len(x)
print("frequency, mean, variance of each class:")
print(np.round(frequency_mean_variance(plain), 2).T)
print(f"accuracy: {accuracy(plain):.3f}")

# %%
# The five lines
# --------------
# Discriminative training moves the same statistics, but by a *contrast*: the row
# counts in class k with the weight "probability of k if the label is known, minus
# probability of k if it is not". A row that the model already predicts has weights
# near zero, and changes nothing.
#
# 1. Score the rows of a batch.
# 2. Turn scores into probabilities.
# 3. Clamped minus free: the weights.
# 4. The step: weighted statistics, plus a weak pull towards the prior.
# 5. Take the step, but stay where all variances are positive.


def stays_inside(new, old):
    """Whether no frequency and no variance shrinks to less than half of itself."""
    one, other = (
        np.stack(frequency_mean_variance(each))[[0, 2]] for each in (new, old)
    )
    return bool((one > 0.5 * other).all())


def step(mu, rows, size, prior, strength=30.0):
    scores = log_joint(mu, x[rows])  # 1
    free = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))  # 2
    weights = one_hot[rows] - free  # 3
    change = weights.T @ statistics[rows] / len(rows) + strength / len(x) * (
        prior - mu
    )  # 4
    while not stays_inside(mu + size * change, mu):  # 5
        size /= 2
    return mu + size * change


prior = np.tile(statistics.mean(axis=0) / 2, (2, 1))  # both classes like all rows
mu, t, rng, progress = plain, 0, np.random.default_rng(0), [accuracy(plain)]
for _ in range(5):  # epochs
    for rows in np.array_split(rng.permutation(len(x)), 200):
        t += 1
        mu = step(mu, rows, 0.1 / (1 + 0.003 * t), prior)
        progress.append(accuracy(mu) if t % 10 == 0 else progress[-1])

print("frequency, mean, variance of each class:")
print(np.round(frequency_mean_variance(mu), 2).T)
print(f"accuracy: {accuracy(mu):.3f}")

# %%
# Class 1 is now a *broad* Gaussian, and class -1 a narrow one in its middle. That
# describes neither class, and it puts the boundary where it belongs: x near 0 is
# class -1, and x far from 0 is class 1.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(100 * np.array(progress))
left.set(xlabel="step", ylabel="accuracy, %", title="Training")
grid = np.linspace(-10, 10, 401)
for k, label in enumerate((-1, 1)):
    (line,) = right.plot(
        grid, np.exp(log_joint(mu, grid))[:, k], label=f"class {label}"
    )
    right.plot(grid, np.exp(log_joint(plain, grid))[:, k], "--", color=line.get_color())
right.set(xlabel="x", ylabel="p(y, x)", title="Maximum likelihood (dashed) and NCLL")
right.legend()

# %%
# The same with discem
# --------------------
# ``GaussianNB`` runs the same update, for any number of columns, with step sizes, a
# prior and safeguards that need no tuning. ``toy_accuracy`` integrates over the true
# distribution, so it has no sampling error.

for loss in ("nll", "ncll", "hinge"):
    model = GaussianNB(loss=loss, random_state=0).fit(X, y)
    print(f"{loss:<6} accuracy {100 * toy_accuracy(model):.1f} %")

# %%
# In the library, the five lines are in ``discem/update.py``. The weights come from
# the *loss*, the statistics from the *family*, and "stay inside" from the
# *projection*. That is why a new loss or a new family is one file.
