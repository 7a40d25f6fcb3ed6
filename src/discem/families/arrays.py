"""Any array namespace: the families in numbers are written for the Python array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import InputError


def namespace_of(*arrays: Any) -> Any:
    """The module whose functions take these arrays: NumPy, or whatever names itself.

    Arrays that do not follow the standard by themselves, such as PyTorch's, are taken through
    `array_api_compat`, where it is installed.
    """
    array = arrays[0]
    if isinstance(array, np.ndarray):
        return np
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        kind = type(array).__name__
        raise InputError(f"{kind} is no standard array: pip install array-api-compat") from error
    return array_namespace(*arrays)
