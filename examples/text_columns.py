"""A table with a column of texts: what the words say beside all other columns, and why.

python examples/text_columns.py                       # on a made table of messages to a shop
python examples/text_columns.py FILE.csv TARGET TEXT  # on yours; needs pandas
"""

import argparse

import numpy as np
from sklearn.model_selection import train_test_split

import discem

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("file", nargs="?", help="a CSV file with a header")
parser.add_argument("target", nargs="?", help="its column of labels")
parser.add_argument("text", nargs="?", help="its column of texts")
options = parser.parse_args()

WORDS = {
    "refund": ["money", "back", "return", "paid", "twice"],
    "repair": ["broken", "screen", "stopped", "repair", "noise"],
    "question": ["how", "where", "manual", "colour", "size"],
}
PLAIN = ["hello", "please", "the", "my", "it", "i", "have", "is", "thanks", "a", "was", "with"]


def messages(n, rng):
    """Messages, what was bought and when, and what each of them is about."""
    rows, labels = [], rng.choice(list(WORDS), n)
    for label in labels:
        words = [rng.choice(WORDS[label] if rng.random() < 0.15 else PLAIN) for _ in range(12)]
        days = rng.exponential({"refund": 10.0, "repair": 200.0, "question": 30.0}[label])
        row = {"days": round(float(days), 1), "product": str(rng.choice(["phone", "lamp"]))}
        rows.append(row | {"message": " ".join(words) if rng.random() < 0.9 else None})
    return rows, labels


if options.file:
    import pandas as pd

    frame, text = pd.read_csv(options.file), options.text
    X, y = frame.drop(columns=options.target).to_dict("records"), frame[options.target].to_numpy()
else:
    (X, y), text = messages(1200, np.random.default_rng(0)), "message"
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

for family in ("ignored", "text"):
    model = discem.TableClassifier(families={text: family}, random_state=0).fit(X, y)
    print(f"{text} is {family}: accuracy {model.score(X_test, y_test):.3f}")

# Held-out rows decided how much the words say: the weight is that of ln p(text | y).
told = model.chosen_["texts"]
print(
    f"\nlog-loss of {told['held_out']} rows held out, without the text: {told['table_alone']:.3f}"
)
print(f"with it: {told['log_loss']:.3f}, weights: {told['weights']}")
for label in model.classes_:
    words = [word for word, _ in model.texts_[text].top_words(label, 5)]
    print(f"  {label}: {', '.join(words)}")

# The text has one part in the score, and its words have theirs in that one.
row = next(row for row in X_test if row[text])
why = model.explain(row)
print(f"\n{row}\n{why}\n\n{text}:")
for word, part in why.text(text).against(*why.classes[np.argsort(-why.scores)[:2]])[:5]:
    print(f"  {part:+.2f}  {word}")
