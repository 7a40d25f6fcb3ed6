"""
Who leaves? A table with missing cells
======================================

A company wants to know which customers will leave, and why. Its table has numbers,
text, dates, flags and counts, and many cells are missing. We fit it as it is, see how
accurate the model stays when more cells go missing, explain a customer, and look for
customers unlike all others.
"""

# %%
# The table
# ---------
# The table is generated, so that you can run this page anywhere. With your own file
# you would call ``pandas.read_csv``.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from discem import TableClassifier
from discem.datasets import customers
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

rows, outcome = customers(2000, random_state=0)
table = pd.DataFrame(rows)
X, X_test, y, y_test = train_test_split(table, outcome, test_size=0.5, random_state=0)
X.head()

# %%
# Fit it
# ------
# There is nothing to encode, to scale or to impute. ``fit`` finds out what each
# column is, tries some models on rows that it holds out, and averages the best ones.

model = TableClassifier(random_state=0).fit(X, y)
model

# %%
# What was each column taken for? If you disagree, say so with ``families={"calls":
# "gaussian"}``.

for column, family in model.families_.items():
    print(f"{column:<10} {family}")

# %%
# How good is it?
# ---------------
# We compare with the usual pipeline, which imputes, encodes, scales and fits a
# logistic regression. Then we remove more and more of the test cells at random.

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def as_numbers(table):
    """The pipeline needs dates as days, flags as numbers, and no identifiers."""
    table = table.drop(columns="id")
    table["since"] = (pd.to_datetime(table["since"]) - pd.Timestamp(2020, 1, 1)).dt.days
    table["paperless"] = table["paperless"].astype(float)
    return table


numbers = make_pipeline(SimpleImputer(), StandardScaler())
levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
columns = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")), (levels, ["plan"])
)
pipeline = make_pipeline(columns, LogisticRegression(max_iter=1000))
pipeline = pipeline.fit(as_numbers(X), y)

rng, shares, losses = np.random.default_rng(0), [0.0, 0.2, 0.4, 0.6], []
for share in shares:
    left = X_test.mask(rng.random(X_test.shape) < share)
    ours = log_loss(y_test, model.predict_proba(left))
    theirs = log_loss(y_test, pipeline.predict_proba(as_numbers(left)))
    losses.append((ours, theirs))
    print(f"{share:4.0%} removed: {ours:.3f} (discem), {theirs:.3f} (pipeline)")

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
names = ["TableClassifier", "imputed logistic regression"]
ax.plot(100 * np.array(shares), losses, "o-", label=names)
ax.set(xlabel="test cells removed, %", ylabel="log-loss", title="Missing cells")
ax.legend()

# %%
# What does it believe?
# ---------------------
# The model is a joint distribution, so you can look at what it believes of each
# class.

axes = model.plot_classes()

# %%
# Can you trust its probabilities? Points on the diagonal are honest. The second
# picture is the accuracy on the customers that are answered, if the model may leave
# out those of whom it is least certain.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
model.plot_calibration(X_test, y_test, left)
model.plot_rejection(X_test, y_test, right)

# %%
# Why this customer?
# ------------------
# Each column adds its part to the log-odds, and the parts add up exactly. Missing
# cells add nothing.

chance = model.predict_proba(X_test)[:, model.classes_.tolist().index("leaves")]
customer = X_test.iloc[[chance.argmax()]]
model.explain(customer)

# %%
# What if fewer customers left?
# -----------------------------
# In the training table more than a third leave. If you know that only one in ten
# leaves where you use the model, say so. Nothing is trained again.

unclear = X_test.iloc[[np.abs(chance - 0.6).argmin()]]
print("as trained:          ", model.predict_proba(unclear).round(3)[0], model.classes_)
model.set_class_prior({"leaves": 0.1, "stays": 0.9})
print("if one in ten leaves:", model.predict_proba(unclear).round(3)[0])
model = model.set_class_prior(None)

# %%
# Fill in, draw, and doubt
# ------------------------
# A joint distribution can also fill in missing cells, and say which rows are unlike
# those of the training.

model.impute(X_test).head()

# %%
age = model.distribution("age", y="leaves")
print(f"customers who leave are {age.mean:.0f} years old on average")
strange = X_test[model.outliers(X_test, rate=0.005)]
print(f"{len(strange)} of {len(X_test)} customers are strange; 1 in 200 was expected")
strange.head()

# %%
# Keep it
# -------
# A model file holds no code, so you can open files of others. From the shell,
# ``discem inspect customers.skops -o customers.html`` makes a page of the model, and
# ``discem predict customers.skops new.csv`` answers for a file.

import pathlib
import tempfile

import discem

path = pathlib.Path(tempfile.mkdtemp(), "customers.skops")
model.save(path)
print(
    "same answers:",
    bool((discem.load(path).predict(X_test) == model.predict(X_test)).all()),
)
