"""Model files that nobody saved: golden ones, altered in structure, and what becomes of them.

A case is a number: it names a golden file, an alteration and all that is random in it. `outcome`
writes the file, reads it and, if it is taken, uses the model. Many cases are run by

    python tests/hostile.py FIRST LAST

which prints a line of JSON for each, in a process of its own, for it may die.
"""

import copy
import faulthandler
import io
import json
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "golden"))

import exponential  # noqa: F401  a family that files may name
import make as golden

import discem
from discem._kinds import KINDS
from discem.exceptions import DiscemError, ModelFileError
from discem.io.container import Container, write_container

SEED = 7
SLOW = 60.0  # seconds after which a case has failed
STAMP = {"format": 3, "version": "0.2.0"}
NAMES = sorted(golden.MODELS)


def taken_apart(path):
    """The tree and the arrays of a model file."""
    with open(path, "rb") as file:
        tree, arrays = Container(file).content()
    return json.loads(tree), arrays


def put_together(path, tree, arrays):
    """Write a file as if this had been saved."""
    with open(path, "wb") as file:
        write_container(file, json.dumps(tree), arrays, STAMP)


# --- places in a tree -----------------------------------------------------------------------------


def places(tree):
    """All places of a tree, each as a container and a key."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, dict | list):
            yield from places(value)


def nodes(tree):
    """All nodes that name a kind."""
    found = [holder[key] for holder, key in places([tree])]
    return [each for each in found if isinstance(each, dict) and {"kind", "fields"} <= each.keys()]


def pick(rng, things):
    return things[rng.integers(len(things))]


def pick_value(rng, tree):
    """A place that holds neither a kind nor a node's name."""
    chosen = [(h, k) for h, k in places(tree) if k not in ("kind", "fields", "keys", "items")]
    return pick(rng, chosen)


# --- alterations: each changes a tree and its arrays, and says what it did ------------------------

SHAPES = {
    "one row": lambda a: a[:1],
    "no row": lambda a: a[:0],
    "last row lost": lambda a: a[:-1],
    "twice as long": lambda a: np.concatenate([a, a]),
    "2 000 long": lambda a: np.resize(a, (2000, *a.shape[1:])),
    "one axis more": lambda a: a[None],
    "flat": lambda a: a.ravel(),
    "transposed": lambda a: a.T,
    "half as wide": lambda a: a[..., : a.shape[-1] // 2],
    "a number": lambda a: a.ravel()[0] if a.size else np.float64(0),
}
TYPES = ["f4", "f2", ">f8", "i8", "i4", "u1", "?", "U8", "S8", "M8[s]", "c16"]
VALUES = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, -1e308, 1e-320, 1e18, 2.0**31, 0.5]


def shape(rng, tree, arrays):
    i, name = rng.integers(len(arrays)), pick(rng, list(SHAPES))
    arrays[i] = np.array(SHAPES[name](arrays[i]))
    return f"array {i} {name}"


def dtype(rng, tree, arrays):
    i, kind = rng.integers(len(arrays)), pick(rng, TYPES)
    source = arrays[i] if arrays[i].dtype.kind in "biuf" else np.arange(arrays[i].size)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[i] = source.astype("i8").astype(kind) if kind[0] == "M" else source.astype(kind)
    return f"array {i} as {kind}"


def value(rng, tree, arrays):
    """One number or all numbers of an array."""
    numeric = [i for i, a in enumerate(arrays) if a.dtype.kind in "biuf" and a.size]
    i, new = pick(rng, numeric), pick(rng, VALUES)
    changed = arrays[i].copy()
    with np.errstate(all="ignore"):
        new = np.array([new]).astype(changed.dtype)[0]
    if rng.random() < 0.5:
        changed[...] = new
    else:
        changed.reshape(-1)[rng.integers(changed.size)] = new
    arrays[i] = changed
    return f"array {i} holds {new}"


def order(rng, tree, arrays):
    """The numbers of an array upside down: classes, words, places."""
    i = rng.integers(len(arrays))
    arrays[i] = np.asfortranarray(arrays[i][::-1])
    return f"array {i} upside down"


def swap_arrays(rng, tree, arrays):
    i, j = rng.choice(len(arrays), 2, replace=False)
    arrays[i], arrays[j] = arrays[j], arrays[i]
    return f"arrays {i} and {j} swapped"


def share_array(rng, tree, arrays):
    chosen = [holder[key] for holder, key in places(tree)]
    pointer = pick(rng, [each for each in chosen if isinstance(each, dict) and "array" in each])
    pointer["array"] = pick(rng, [0, 1, -1, 10**6, "0", None, 0.5, True, int(rng.integers(20))])
    return f"a place of array {pointer['array']}"


SCALARS = [
    *(None, True, "", "x", "predict", 0, -1, 1, 2, 10**6, 10**12, 2**63, 10**40, 0.0, -0.5, 0.3),
    *(1e-320, 1e308, float("nan"), float("inf"), [], [1, 2, 3], ["a", "b"], "filename", "balanced"),
    *({"kind": "dict", "fields": {"keys": ["a"], "values": [1]}}, {"array": 0}, {}, {"kind": "x"}),
    *({"kind": "tuple", "fields": {"items": []}}, "nll", "auto", "(a+)+$", "é" * 1000),
]


def replace(rng, tree, arrays):
    holder, key = pick_value(rng, tree)
    holder[key] = copy.deepcopy(pick(rng, SCALARS))
    return f"{key} is {str(holder[key])[:40]}"


def number(rng, tree, arrays):
    """A number that is another number."""
    plain = [(h, k) for h, k in places(tree) if type(h[k]) in (int, float) and k != "array"]
    if not plain:
        return replace(rng, tree, arrays)
    holder, key = pick(rng, plain)
    old = holder[key]
    holder[key] = pick(rng, [-old, old + 1, old * 10**9, old / 2, float(old), int(old), old - 1])
    return f"{key} was {old}, is {holder[key]}"


def drop_field(rng, tree, arrays):
    node = pick(rng, nodes(tree))
    fields = node["fields"]
    if fields:
        name = pick(rng, list(fields))
        del fields[name]
        return f"{node['kind']} without {name}"
    return "nothing"


def extra_field(rng, tree, arrays):
    node = pick(rng, nodes(tree))
    name = pick(rng, ["colour", "__class__", "self", "cls", "_model", "kind", "first"])
    node["fields"][name] = copy.deepcopy(pick(rng, SCALARS))
    return f"{node['kind']} with {name}"


def swap_fields(rng, tree, arrays):
    node = pick(rng, nodes(tree))
    names = list(node["fields"])
    if len(names) < 2:
        return "nothing"
    one, two = (names[j] for j in rng.choice(len(names), 2, replace=False))
    fields = node["fields"]
    fields[one], fields[two] = fields[two], fields[one]
    return f"{node['kind']}: {one} and {two} swapped"


def other_kind(rng, tree, arrays):
    node = pick(rng, nodes(tree))
    others = [*KINDS, "tuple", "dict", "objects", "label", "RandomState", "os.system"]
    old, node["kind"] = node["kind"], pick(rng, others)
    return f"{old} is a {node['kind']}"


def other_node(rng, tree, arrays):
    """A part where another belongs."""
    holder, key = pick_value(rng, tree)
    node = copy.deepcopy(pick(rng, nodes(tree)))
    if isinstance(holder[key], dict) and holder[key].get("kind") == node["kind"]:
        return replace(rng, tree, arrays)
    holder[key] = node
    return f"{key} is a {node['kind']}"


def pairs_of(tree, name):
    """Keys and values of all dicts that stand under a name."""
    found = [h[k]["fields"] for h, k in places(tree) if k == name and isinstance(h[k], dict)]
    return [(fields["keys"], fields["values"]) for fields in found if "keys" in fields]


def attribute(rng, tree, arrays):
    """Something more that was fitted, or something less."""
    keys, values = pick(rng, pairs_of(tree, "fitted"))
    if rng.random() < 0.5:
        place = rng.integers(len(keys))
        values.pop(place)
        return f"not fitted: {keys.pop(place)}"
    name = pick(rng, ["predict", "__class__", "_rows", "score", "_check_fitted", "fit", "x_", 3])
    keys.append(name)
    values.append(copy.deepcopy(pick(rng, SCALARS)))
    return f"fitted: {name}"


def option(rng, tree, arrays):
    """An option of another value, or of no estimator."""
    keys, values = pick(rng, pairs_of(tree, "params") + pairs_of(tree, "options"))
    if rng.random() < 0.2:
        name = pick(rng, ["input", "tokenizer", "decode_error", "dtype", "colour"])
        keys.append(name)
        values.append(pick(rng, ["filename", "file", 1, None]))
        return f"option {name} more"
    place = rng.integers(len(keys))
    values[place] = copy.deepcopy(pick(rng, SCALARS))
    return f"option {keys[place]} is {str(values[place])[:40]}"


def record(rng, tree, arrays):
    """What is on record of the training, which is JSON in JSON."""
    chosen = [(h, k) for h, k in places(tree) if k in ("history", "stream")]
    holder, key = pick(rng, chosen)
    garbage = [
        "",
        "{",
        "[]",
        "{}",
        "[1]",
        '["x"]',
        "[" * 10**5,
        '{"rows": "x"}',
        "NaN",
        '[{"a": {}}]',
    ]
    holder[key] = pick(rng, garbage)
    return f"{key} is {holder[key][:20]}"


def deep(rng, tree, arrays):
    holder, key = pick_value(rng, tree)
    nested = holder[key]
    for _ in range(int(pick(rng, [20, 45, 60, 150, 400]))):
        one = {"kind": "scaled", "fields": {"schedule": nested, "factor": 1.0}}
        nested = pick(rng, [[nested], one])
    holder[key] = nested
    return f"{key} is nested"


ALTERATIONS = {
    **{each.__name__: each for each in (shape, dtype, value)},
    **{each.__name__: each for each in (order, swap_arrays, share_array, replace, number)},
    **{each.__name__: each for each in (drop_field, extra_field, swap_fields, other_kind)},
    **{each.__name__: each for each in (other_node, attribute, option, record, deep)},
}
OFTEN = {"shape": 4, "dtype": 2, "value": 4, "replace": 4, "number": 3, "option": 3}


# --- and of the container -------------------------------------------------------------------------


def member(rng, data):
    """A file one of whose members lies, is lost, is there twice or is compressed."""
    source = zipfile.ZipFile(io.BytesIO(data))
    names = source.namelist()
    chosen, how = (
        pick(rng, names),
        pick(rng, ["lies", "lost", "twice", "cut", "compressed", "JSON"]),
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as members, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            content = source.read(name)
            if name == chosen and how == "lies" and name.endswith("npy"):
                content = content.replace(b"'shape': (", b"'shape': (9", 1).replace(
                    b"  \n", b" \n", 1
                )
            elif name == chosen and how == "cut":
                content = content[: len(content) // 2]
            elif name == chosen and how == "JSON":
                content = b"[" * 10**5
            if name != chosen or how != "lost":
                packed = how == "compressed" and name == chosen
                kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
                members.writestr(name, content, kind)
                if name == chosen and how == "twice":
                    members.writestr(name, content)
    return f"{chosen} {how}", out.getvalue()


def write_case(path, number):
    """Write the file of a case; return the golden file it was, and what was done to it."""
    rng = np.random.default_rng([SEED, number])
    name = NAMES[number % len(NAMES)]
    tree, arrays = taken_apart(golden.HERE / f"{name}.skops")
    chances = np.array([*(OFTEN.get(each, 1) for each in ALTERATIONS), 1.0])
    kind = pick(rng, [*np.repeat([*ALTERATIONS, "member"], chances.astype(int))])
    if kind == "member":
        put_together(path, tree, arrays)
        what, data = member(rng, Path(path).read_bytes())
        Path(path).write_bytes(data)
        return name, str(kind), what
    what = ALTERATIONS[kind](rng, tree, arrays)
    put_together(path, tree, [np.asarray(each) for each in arrays])
    return name, str(kind), what


# --- what becomes of them -------------------------------------------------------------------------


def use(model, name, path):
    """All that a program does with a model."""
    X, y = golden.MODELS[name][1]()
    model.predict(X)
    model.predict_proba(X)
    model.score_samples(X)
    model.class_prior_, model.n_iter_  # noqa: B018
    if getattr(model, "n_features", None) is None:
        model.sample(3, random_state=0)
    if not isinstance(model.class_weight, dict):
        y = np.where(y == y[0], "dogwood", y)  # a class unknown so far
    model.partial_fit(X, y)
    model.predict(X)
    model.save(path)
    discem.load(path)
    if hasattr(model, "explain") and name != "mixture-words":  # which has no columns to explain
        model.explain(X[0])


def outcome(number, folder):
    """What becomes of a case: a dict of its name, and how it ended."""
    path = Path(folder) / "case.skops"
    name, kind, what = write_case(path, number)
    found = {"case": number, "file": name, "kind": kind, "what": what}
    begun = time.perf_counter()
    try:
        model = discem.load(path)
    except ModelFileError as error:
        one_line = "\n" not in str(error) and len(str(error)) < 1000
        found |= {"end": "refused" if one_line else "raised", "why": str(error)}
    except Exception as error:
        found |= {"end": "raised", "why": f"load: {error!r}"}
    else:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                use(model, name, path)
            found["end"] = "harmless"
        except DiscemError as error:
            found |= {"end": "harmless", "why": f"{type(error).__name__}: {error}"}
        except Exception as error:
            found |= {"end": "raised", "why": repr(error)}
    return found | {"seconds": round(time.perf_counter() - begun, 3)}


def main(first, last):
    """Run cases, each in a line."""
    with tempfile.TemporaryDirectory() as folder:
        for case in range(first, last):
            print(json.dumps({"case": case, "end": "begun"}), flush=True)
            faulthandler.dump_traceback_later(SLOW, exit=True)
            print(json.dumps(outcome(case, folder)), flush=True)
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
