"""Logarithms for inner loops: they are the cost of naive Bayes, so few are taken, and in a row.

A sum of logarithms is the logarithm of a product, so factors are multiplied, their binary exponents
set aside before they overflow, and one logarithm per class is taken at the end. The loops have no
branch and run over contiguous classes, which lets the compiler use vector instructions. `bits`
are the numbers as unsigned integers, in the same memory.
"""

from __future__ import annotations

import numpy as np

from .._compile import helper

_HALF_ROOT = np.uint64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
_LIFT = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_SHIFT = np.uint64(52)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


_BIASED = np.uint64(0x4330000000000000)  # 2^52: its lowest bits count in ones
_BIAS = 4503599627370496.0 + 1023.0  # 2^52, and what is added to exponents


@helper
def set_exponents_aside(bits, x, exponent):
    """Divide row `x` by powers of two into [sqrt(1/2), sqrt(2)); count them in row `exponent`.

    The count is kept as an integer in the bits of the row, 1023 too high for each call: whole
    vectors of integers add faster than they convert. Numbers below 2.3e-308 are out of its domain.
    """
    for k in range(bits.shape[1]):
        lifted = bits[x, k] + _LIFT
        bits[exponent, k] += lifted >> _SHIFT
        bits[x, k] = (lifted & _FRACTION) + _HALF_ROOT


@helper
def forget_calls(bits, exponent, calls):
    """Make the counts in row `exponent` as high as they were before so many calls."""
    bias = np.uint64(1023) * np.uint64(calls)
    for k in range(bits.shape[1]):
        bits[exponent, k] -= bias


@helper
def log_fraction(f):
    """The parts of ln(1 + f), |f| < 0.42, as fdlibm has them: the sum is f - half + rest."""
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    even = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    half = 0.5 * f * f
    return half, s * (half + odd + even)


@helper
def logs(numbers, bits, x, exponent, calls):
    """Replace row `x` by ln(x * 2**exponent), its exponents set aside in `calls` calls."""
    for k in range(numbers.shape[1]):
        power = np.float64(np.int64(bits[exponent, k])) - 1023.0 * calls
        f = numbers[x, k] - 1.0
        half, rest = log_fraction(f)
        numbers[x, k] = rest + power * _LN2_LOW - half + f + power * _LN2_HIGH


@helper
def take_logs(numbers, bits, x, exponent):
    """Replace row `x` by its logarithms."""
    for k in range(numbers.shape[1]):
        numbers[exponent, k] = 0.0  # 0 in bits, too
    set_exponents_aside(bits, x, exponent)
    logs(numbers, bits, x, exponent, 1.0)


@helper
def take_block_logs(block, bits, n):
    """Replace the first `n` numbers of the block by their logarithms."""
    for j in range(n):
        lifted = bits[0, j] + _LIFT
        bits[1, j] = (lifted >> _SHIFT) | _BIASED
        bits[0, j] = (lifted & _FRACTION) + _HALF_ROOT
    for j in range(n):
        power = block[1, j] - _BIAS
        f = block[0, j] - 1.0
        half, rest = log_fraction(f)
        block[0, j] = rest + power * _LN2_LOW - half + f + power * _LN2_HIGH
