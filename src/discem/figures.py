"""What a pass over rows measures on the way, from the scores it takes before each update."""

FIGURES = ("weight", "loss", "nll", "ncll", "hinge", "accuracy", "shortened", "rows")
WEIGHT, LOSS, NLL_SUM, NCLL_SUM, HINGE_SUM, CORRECT, SHORTENED, ROWS = range(len(FIGURES))
