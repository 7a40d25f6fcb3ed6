"""Default fits on random unpleasant data, each beside its own start and its own NLL model.

The tables and count tables are put together at random from the parts of the zoo in the tests: heavy
tails, flags, categories, columns that leak the label, missing cells, wrong labels, rare classes,
weights, documents of any length. A model should never end worse than it began, nor do much worse on
fresh rows of the same process than counting does. Cases are numbered, and one can be seen alone.

    python benchmarks/zoo.py                              # 500 tables and 250 count tables
    python benchmarks/zoo.py --tables 50 --counts 25      # whether it runs
    python benchmarks/zoo.py --case t17                   # the 18th table, in full
    python benchmarks/zoo.py --json zoo.json --jobs 4
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from harness import clock, in_process, versions, write_json
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # whose zoo comes before this file

from zoo import KINDS, Sample, Spoiling, as_texts, random_counts, random_table
from zoo_laws import POINTS, Trained

import discem

MODELS: dict[str, tuple[tuple[str, Callable[..., Any]], ...]] = {
    "t": (("GaussianNB", discem.GaussianNB), ("MixtureClassifier", discem.MixtureClassifier)),
    "c": (
        ("MultinomialNB", discem.MultinomialNB),
        ("TopicClassifier", discem.TopicClassifier),
        ("TextClassifier", discem.TextClassifier),
    ),
}
WORK = 2e5  # rows x columns x classes of the largest table
FAULTS = {
    "failed": "an error",
    "not finite": "a number that is none",
    "worse than start": "penalised training objective above its start",
    "log-loss > 10": "on fresh rows, and above its start",
    "accuracy < nll": "on fresh rows, by 2 points and the noise of few rows",
    "log-loss > nll": "on fresh rows, by a twentieth, 0.02 and the noise of few rows",
    "warning amiss": "none where training did not converge, or one where it did",
}


# --- cases ----------------------------------------------------------------------------------------


def draw(case: str, seed: int) -> tuple[dict[str, Any], Sample]:
    """A case and what it is made of, from its name: t17 is the 18th table, c3 the 4th of counts."""
    kind, number = case[0], int(case[1:])
    rng = np.random.default_rng([seed, "tc".index(kind), number])
    K = int(rng.integers(2, 6) if rng.random() < 0.6 else rng.integers(6, 31))
    n = max(round(10 ** rng.uniform(np.log10(20), np.log10(3000))), 2 * K)
    spoilt = Spoiling(
        uneven=rng.choice([0.0, 0.5, 1.0]),
        wrong=rng.choice([0.0, 0.0, 0.1, 0.4]),
        missing=rng.choice([0.0, 0.0, 0.1, 0.5]),
        weighted=bool(rng.random() < 0.2),
        shifted=bool(rng.random() < 0.2),
        repeated=bool(rng.random() < 0.2),
    )
    made: dict[str, Any] = {"case": case, "classes": K}
    if kind == "c":
        words, contrast = round(10 ** rng.uniform(0.3, 2.5)), rng.choice([0.0, 0.3, 1.0, 2.0])
        sample = random_counts(rng, n, K, words, contrast, spoilt)
        made |= {"contrast": contrast}
    else:
        d = int(rng.integers(1, 61) if rng.random() < 0.5 else rng.integers(1, 11))
        some = rng.choice(list(KINDS), size=rng.integers(1, 5), replace=False)
        kinds = [*some, *rng.choice(some, size=max(d - len(some), 0))][:d]
        wide = (d + 3 * kinds.count("one_hot")) * (1 + spoilt.repeated)  # a category is 3 or 4
        n = int(np.clip(n, 20, max(WORK / (wide * K), 20)))
        sample = random_table(rng, n, K, kinds, spoilt)
        made |= {"kinds": sorted(set(map(str, kinds)))}
    rows, columns = sample.X.shape
    plain = Spoiling()
    wrongs = {f: v for f, v in spoilt._asdict().items() if v != getattr(plain, f)}
    return made | {"rows": rows, "columns": columns} | wrongs, sample


def judge(case: str, seed: int) -> list[dict[str, Any]]:
    """Figures of every model on a case, and its faults by name, each with how bad it is."""
    made, sample = draw(case, seed)
    return [made | {"model": name} | figures(make, sample) for name, make in MODELS[case[0]]]


def figures(make: Callable[..., Any], sample: Sample) -> dict[str, Any]:
    if make is discem.TextClassifier:
        sample = as_texts(sample)
    try:
        model, seconds = clock(Trained, make(random_state=0), sample)
        nll = Trained(make(loss="nll", random_state=0), sample)
        start, end = (value / model.weight.sum() for value in (model.start, model.end))
        loss, first, counted = (
            float(np.mean(losses)) if len(losses) else 0.0
            for losses in (model.log_losses, model.log_losses_at_start, nll.log_losses)
        )
        accuracy, counting = (
            float(np.mean(each.correct)) if len(each.correct) else 0.0 for each in (model, nll)
        )
    except Exception as error:  # a fault of the library, and no reason to stop
        return {"faults": {"failed": 1.0}, "error": f"{type(error).__name__}: {error}"}
    allowed = POINTS + model.price_of_few_rows()
    broken = {
        "not finite": (model.not_finite(), 1.0),
        "worse than start": (model.worse_than_its_start(), end - start),
        "log-loss > 10": (loss > max(10.0, first), loss),
        "accuracy < nll": (model.less_accurate_than(nll, allowed), counting - accuracy),
        "log-loss > nll": (model.larger_log_loss_than(nll), loss - counted),
        "warning amiss": (model.warned_wrongly(), 1.0),
    }
    return {
        "faults": {name: bad for name, (is_broken, bad) in broken.items() if is_broken},
        "objective": {"start": start, "end": end},
        "accuracy": {"nll": counting, "end": accuracy},
        "log_loss": {"start": first, "nll": counted, "end": loss},
        "warned": bool(model.warnings),
        "epochs": model.core.n_iter_,
        "seconds": seconds,
    }


def judge_all(cases: list[str], seed: int, shows: bool) -> list[dict[str, Any]]:
    """The figures of many cases, one after another."""
    results = []
    with threadpool_limits(1):
        for done, case in enumerate(cases, start=1):
            results += judge(case, seed)
            if shows and (done % 25 == 0 or done == len(cases)):
                print(f"{done} of {len(cases)} cases", file=sys.stderr, flush=True)
    return results


def judge_side_by_side(cases: list[str], seed: int, jobs: int) -> list[dict[str, Any]]:
    """The same, in several processes."""
    if jobs == 1:
        return judge_all(cases, seed, True)
    with ThreadPoolExecutor(jobs) as threads:
        shares = [
            threads.submit(in_process, judge_all, cases[first::jobs], seed, first == 0)
            for first in range(jobs)
        ]
        found = [result for share in shares for result in share.result()]
    return sorted(found, key=lambda result: cases.index(result["case"]))


# --- results --------------------------------------------------------------------------------------


def table(results: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each model: how many cases have each fault."""
    yield f"{'':<19}{'cases':>6}" + "".join(f"{name:>18}" for name in FAULTS) + f"{'warned':>8}"
    for name in dict.fromkeys(result["model"] for result in results):
        own = [result for result in results if result["model"] == name]
        counts = [sum(fault in result["faults"] for result in own) for fault in FAULTS]
        warned = sum(result.get("warned", False) for result in own)
        yield f"{name:<19}{len(own):>6}" + "".join(f"{n:>18}" for n in counts) + f"{warned:>8}"


def worst(results: list[dict[str, Any]], most: int) -> Iterator[str]:
    """The worst cases of each fault."""
    for fault, meaning in FAULTS.items():
        bad = [result for result in results if fault in result["faults"]]
        bad.sort(key=lambda result: -result["faults"][fault])
        if bad:
            yield f"\n{fault} ({meaning}):"
        for result in bad[:most]:
            yield "  " + summary(result)


def summary(result: dict[str, Any]) -> str:
    """One case in a line."""
    text = f"{result['case']:<5}{result['model']:<18}"
    if "error" in result:
        return text + result["error"][:100]
    F, accuracy, loss = result["objective"], result["accuracy"], result["log_loss"]
    text += f"objective {F['start']:.4g} -> {F['end']:.4g}, accuracy {accuracy['end']:.3f} "
    text += f"(nll {accuracy['nll']:.3f}), log-loss {loss['end']:.3f} (nll {loss['nll']:.3f}); "
    about = ("rows", "columns", "classes", "kinds", "contrast", *Spoiling._fields)
    return text + ", ".join(f"{name} {result[name]}" for name in about if name in result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=500, help="random tables (default 500)")
    parser.add_argument("--counts", type=int, default=250, help="random count tables (default 250)")
    parser.add_argument("--seed", type=int, default=0, help="of all cases (default 0)")
    parser.add_argument("--case", metavar="NAME", help="one case alone, such as t17 or c3")
    parser.add_argument("--worst", type=int, default=5, help="cases listed of a fault (default 5)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    cases = [f"t{i}" for i in range(options.tables)] + [f"c{i}" for i in range(options.counts)]
    cases = [options.case] if options.case else cases
    found = versions()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    results, seconds = clock(judge_side_by_side, cases, options.seed, options.jobs)
    if options.case:
        for result in results:
            print(summary(result), f"\n  faults: {', '.join(result['faults']) or 'none'}")
    else:
        print("\n".join([*table(results), *worst(results, options.worst)]))
        print(f"\n{len(cases)} cases of seed {options.seed} in {seconds:.0f} s")
    if options.json:
        write_json(options.json, {"versions": found, "seed": options.seed, "results": results})


if __name__ == "__main__":
    main()
