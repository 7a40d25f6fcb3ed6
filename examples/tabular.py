"""A table with missing cells: train, predict, explain one prediction, say what is unusual."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import discem

data = load_wine()
rng = np.random.default_rng(0)
X = np.where(rng.uniform(size=data.data.shape) < 0.1, np.nan, data.data)  # a tenth is missing
X, X_test, y, y_test = train_test_split(X, data.target, stratify=data.target, random_state=0)

model = discem.GaussianNB(random_state=0).fit(X, y)
print(f"accuracy with a tenth of the cells missing: {model.score(X_test, y_test):.3f}")

# ln p(y, x) is a sum over features, so a prediction falls into exact contributions, one a feature;
# that of a missing cell is zero.
row = X_test[:1]
joint = model.predict_joint_log_proba(row)[0]
best, second = joint.argsort()[::-1][:2]
mean, deviation = model.mean_, np.sqrt(model.var_)
density = np.nan_to_num(-0.5 * ((row - mean) / deviation) ** 2 - np.log(deviation))
evidence = density[best] - density[second]
prior = np.log(model.class_prior_[best] / model.class_prior_[second])
assert np.isclose(evidence.sum() + prior, joint[best] - joint[second])
print(f"\nwhy {data.target_names[best]} and not {data.target_names[second]}, in log-odds:")
for place in np.abs(evidence).argsort()[::-1][:4]:
    print(f"  {data.feature_names[place]:<30} {evidence[place]:+.2f}")
print(f"  {'all features and the class prior':<32} {joint[best] - joint[second]:+.2f}")

# For densities, train for them: plain likelihood knows what a wine looks like.
plain = discem.GaussianNB(loss="nll").fit(X, y)
print(f"\nln p(x) of that wine: {plain.score_samples(row)[0]:.1f}")
print(f"ln p(x) of three times that wine: {plain.score_samples(3 * row)[0]:.1f}")
