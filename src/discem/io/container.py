"""The container of model files: a text and arrays in a zip, in the layout of skops.

Nothing is compressed, so reading takes no more memory than the length of the file. Every member is
checked before it is read, and none can be code. The same content gives the same bytes.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .._checks import demand

_STAMP, _SCHEMA = "discem.json", "schema.json"
_NPY = (1, 0)  # the version of ``.npy`` files
_PLAIN = "biufUSmM"  # kinds of arrays: numbers, texts and times, no objects and no records
_CODED = {"U": (np.uint32, 0x10FFFF), "b": (np.uint8, 1)}  # texts and booleans, and their codes
_LARGE = 1 << 30  # bytes of a member from which a zip needs its wider fields


class Container:
    """An open container: its stamp, and then its content."""

    def __init__(self, file: IO[bytes]):
        size = os.fstat(file.fileno()).st_size
        self._zip = zipfile.ZipFile(file)
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        demand(len(self._members) == len(members), "it holds two members of one name")
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        demand(stored, "it is compressed, which model files are not")
        total = sum(member.file_size for member in members)
        demand(total <= size, "its members are larger than the file")

    def stamp(self) -> dict[str, Any]:
        """Return the name and version of the writer."""
        return json.loads(self._zip.read(self._members[_STAMP]))

    def content(self) -> tuple[str, list[np.ndarray]]:
        """Return the text and the arrays."""
        content = self._typed(json.loads(self._zip.read(self._members[_SCHEMA])), "dict")
        text = json.loads(self._typed(content["model"], "str"))
        return text, [self._array(node) for node in self._typed(content["arrays"], "list")]

    def _typed(self, node: dict[str, Any], kind: str, module: str = "builtins") -> Any:
        """Return the content of a node of the schema, which must have this type."""
        name = f"{node['__module__']}.{node['__class__']}"
        demand(name == f"{module}.{kind}", f"it holds a type that is not ours: {name}")
        return node.get("content")

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        """Return an array in native byte order; each member is one array, and read once."""
        self._typed(node, "ndarray", "numpy")
        member = self._members.pop(node["file"])
        with self._zip.open(member) as file:
            demand(npy.read_magic(file) == _NPY, "it holds an array of an unknown version")
            shape, _, dtype = npy.read_array_header_1_0(file)
            plain = dtype.kind in _PLAIN and dtype.itemsize
            demand(plain, f"it holds an array of {dtype}")
            n_bytes = dtype.itemsize * math.prod(shape)
            fits = min(shape, default=0) >= 0 and file.tell() + n_bytes == member.file_size
            demand(fits, "it holds an array that is not as long as it says")
        with self._zip.open(member) as file:
            array = npy.read_array(file, allow_pickle=False)
        array = np.ascontiguousarray(array, dtype=dtype.newbyteorder("=")).reshape(shape)
        if dtype.kind in _CODED and array.size:
            code, most = _CODED[dtype.kind]
            demand(array.ravel().view(code).max() <= most, f"it holds {dtype} that is none")
        return array


def open_to_read(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file; reading a device or a pipe might never end."""
    regular = stat.S_ISREG(os.stat(path).st_mode)
    demand(regular, f"{path} is a folder, a device or a pipe, not a model file")
    return open(path, "rb")


def write_container(
    file: IO[bytes], text: str, arrays: list[np.ndarray], stamp: dict[str, Any]
) -> None:
    """Write a container to an open file."""
    names = [f"{number}.npy" for number in range(len(arrays))]
    with zipfile.ZipFile(file, "w") as members:
        for name, array in zip(names, arrays, strict=True):
            with members.open(_member(name), "w", force_zip64=array.nbytes >= _LARGE) as member:
                npy.write_array(member, np.ascontiguousarray(array).reshape(array.shape), _NPY)
        members.writestr(_member(_SCHEMA), _encoded(_schema(text, names)))
        members.writestr(_member(_STAMP), json.dumps(stamp))


def _encoded(schema: dict[str, Any]) -> bytes:
    """Return the schema as JSON in UTF-8; ASCII would merge two surrogates into one character."""
    text = json.dumps(schema, indent=1, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _member(name: str) -> zipfile.ZipInfo:
    """Return a member without time and system, for reproducible bytes."""
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, 0o644 << 16
    return member


def _schema(text: str, names: list[str]) -> dict[str, Any]:
    """Return the schema of `skops.io.dumps({"model": text, "arrays": arrays})`, no addresses."""
    numbers = iter(range(len(names) + 5))

    def node(kind: str, loader: str, module: str = "builtins", **fields: Any) -> dict[str, Any]:
        head = {"__class__": kind, "__module__": module, "__loader__": loader}
        return head | fields | {"__id__": next(numbers)}

    arrays = [node("ndarray", "NdArrayNode", "numpy", type="numpy", file=name) for name in names]
    content = {
        "model": node(
            "str", "JsonNode", content=json.dumps(text, ensure_ascii=False), is_json=True
        ),
        "arrays": node("list", "ListNode", content=arrays),
    }
    word = node("str", "TypeNode")
    keys = node("list", "ListNode", content=[word, word])
    schema = node("dict", "DictNode", content=content, key_types=keys)
    return schema | {"protocol": 2, "_skops_version": "0.10.0"}
