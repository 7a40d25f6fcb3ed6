"""The text data sets of experiments and benchmarks: files are read as they are."""

import gzip
import os
import re

import pytest
from lab.datasets import DataNotFoundError, load_text

from discem.exceptions import DiscemError, InputError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mail").mkdir()
    return tmp_path


def test_load_text_keeps_empty_documents_and_odd_characters(folder):
    content = "spam\tbuy\tnow\r\nham\t\nham\tgrüße\x85 \x0b\n"
    with gzip.open(folder / "mail" / "train.txt.gz", "wb") as file:
        file.write(content.encode())
    (folder / "mail" / "test.txt").write_text("ham\tplain\n")
    texts, labels = load_text("mail", folder)
    assert labels == ["spam", "ham", "ham"]
    assert texts == ["buy\tnow", "", "grüße\x85 \x0b"]
    assert load_text("mail", folder, "test") == (["plain"], ["ham"])


def test_load_text_reads_the_folder_of_the_environment(folder, monkeypatch):
    (folder / "mail" / "train.txt").write_text("ham\thello\n")
    monkeypatch.setenv("DISCEM_DATA", str(folder))
    assert load_text("mail") == (["hello"], ["ham"])


def test_load_text_says_what_is_missing_and_where_it_goes(folder, monkeypatch):
    monkeypatch.delenv("DISCEM_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match=r"DISCEM_DATA.*cade/train\.txt\.gz"):
        load_text("cade")
    wanted = folder / "cade" / "test.txt.gz"
    with pytest.raises(FileNotFoundError, match=re.escape(str(wanted))) as caught:
        load_text("cade", folder, "test")
    assert isinstance(caught.value, DiscemError)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.txt", b"ham\thello\nno tab here\n", "line 2: expected label<TAB>text"),
        ("train.txt", b"ham\t\xff\xfe\n", "cannot be read as UTF-8"),
        ("train.txt.gz", b"this is not gzip", "cannot be read"),
    ],
)
def test_load_text_names_a_bad_file(folder, name, content, message):
    (folder / "mail" / name).write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_text("mail", folder)
    assert str(folder / "mail" / name) in str(caught.value)


@pytest.mark.skipif("DISCEM_DATA" not in os.environ, reason="DISCEM_DATA is not set: no text data")
@pytest.mark.parametrize(
    ("name", "train", "test"), [("webkb", 2803, 1396), ("r8", 5485, 2189), ("r52", 6532, 2568)]
)
def test_load_text_on_the_data_of_the_paper(name, train, test):
    try:
        sizes = [len(load_text(name, subset=subset)[0]) for subset in ("train", "test")]
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert sizes == [train, test]
