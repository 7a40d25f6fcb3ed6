"""Numbers told from a table with empty cells: means, intervals, and what it does not know.

python examples/regression.py                                 # on a made table of flats
python examples/regression.py FILE.csv TARGET                 # on yours; needs pandas
python examples/regression.py --picture docs/regression       # also draw, as .png and .svg
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

import discem
from discem.datasets import flats

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("file", nargs="?", help="a CSV file with a header")
parser.add_argument("target", nargs="?", help="its column of numbers")
parser.add_argument("--picture", type=Path, metavar="PATH", help="beginning of the pictures' names")
options = parser.parse_args()

if options.file:
    import pandas as pd

    frame = pd.read_csv(options.file)
    X, y = frame.drop(columns=options.target).to_dict("records"), frame[options.target].to_numpy()
else:
    X, y = flats(2000, random_state=0)  # dicts; a data frame is as good
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

model = discem.TableRegressor(random_state=0).fit(X, y)
print("what each column was taken for:")
for name, family in model.families_.items():
    print(f"  {name:<12} {family}")
print(f"\nthe answers are {model.target_}; {len(model.members_)} models are averaged")

print("\ntest cells removed     RMSE   log density   within the 90 % interval")
rng = np.random.default_rng(0)
for share in (0.0, 0.2, 0.4, 0.6):
    left = [{k: cell for k, cell in row.items() if rng.random() >= share} for row in X_test]
    found = model.predict_dist(left)
    rmse = np.sqrt(np.mean((found.mean - y_test) ** 2))
    inside = (found.quantile(0.05) <= y_test) & (y_test <= found.quantile(0.95))
    told = f"{rmse:7.1f}   {found.log_prob(y_test).mean():11.3f}   {inside.mean():22.1%}"
    print(f"{share:18.0%}   {told}")

row = dict(X_test[0])
row.pop(next(iter(row)))  # so that something is missing
why = model.explain(row)
print(f"\n{row}\nprediction {why.prediction:.1f}, standard deviation {why.std:.1f}")
for name, part in why.largest():
    print(f"  {part:+9.1f}  {name} = {row.get(name, 'missing')}")
for name, std in why.if_known.items():
    print(f"  if {name} was known, the standard deviation would be about {std:.1f}")

if options.picture and not options.file:
    from matplotlib.figure import Figure

    from discem.report.plots import COLOURS, save_figure, style

    sizes = np.linspace(25.0, 150.0, 60)
    with style():
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        for panel, district, colour in zip(axes, ("old town", "suburb"), COLOURS, strict=False):
            asked = [{"size": size, "district": district} for size in sizes]
            ends = np.linspace(0.05, 0.95, 10)
            fan = model.predict_quantiles(asked, ends)
            for low in range(5):
                panel.fill_between(sizes, fan[:, low], fan[:, -1 - low], color=colour, alpha=0.16,
                                   linewidth=0)  # fmt: skip
            panel.plot(sizes, model.predict(asked), color=colour, label="mean")
            own = [(r["size"], rent) for r, rent in zip(X_test, y_test, strict=True)
                   if r.get("district") == district and "size" in r]  # fmt: skip
            panel.scatter(*np.array(own).T, s=5, color="#404040", alpha=0.5, linewidths=0,
                          label="flats that were not trained on")  # fmt: skip
            panel.set(title=district, xlabel="size, square metres", xlim=(25, 150), ylim=(0, 4200))
            panel.legend(loc="upper left")
        axes[0].set_ylabel("rent")
    save_figure(figure, Path(f"{options.picture}-fan"))

    flat = {"size": 70.0, "rooms": 3.0, "district": "suburb", "built": 1995.0, "balcony": True}
    lacking = {"all cells": (), "no size": ("size",), "no district": ("district",)}
    rents = np.linspace(300.0, 1900.0, 400)
    with style():
        figure = Figure(figsize=(6.0, 3.2), layout="constrained")
        panel = figure.subplots()
        for (name, gone), colour in zip(lacking.items(), COLOURS, strict=False):
            one = {k: cell for k, cell in flat.items() if k not in gone}
            found = model.predict_dist([one] * len(rents))
            panel.plot(rents, np.exp(found.log_prob(rents)), color=colour,
                       label=f"{name}: {found.mean[0]:.0f} ± {found.std[0]:.0f}")  # fmt: skip
        panel.set(title="A flat in the suburb", xlabel="rent", ylabel="density", ylim=(0, None))
        panel.legend()
    save_figure(figure, Path(f"{options.picture}-missing"))
