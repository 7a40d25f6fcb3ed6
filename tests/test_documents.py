"""Readers: every format gives the same documents, lazily, and a bad file names its place."""

import gzip
import io
import json
import sys
from types import SimpleNamespace

import pytest

from discem.exceptions import InputError, MissingExtraError
from discem.io.documents import Document, batches, read_documents

DOCUMENTS = [
    Document("spam", 'buy "now", cheap'),
    Document(None, "who knows"),
    Document("ham", ""),
    Document("häm", "grüße\x85 \x0b"),
]


def as_txt(documents):
    return "".join(f"{label or ''}\t{text}\n" for label, text in documents)


def as_csv(documents, delimiter=","):
    def quoted(cell):
        return '"' + cell.replace('"', '""') + '"'

    rows = [(str(i), d.text, d.label or "") for i, d in enumerate(documents)]
    rows = [("id", "text", "label"), *rows]
    return "".join(delimiter.join(map(quoted, row)) + "\r\n" for row in rows)


def as_jsonl(documents):
    return "".join(json.dumps({"id": 1, **d._asdict()}) + "\n" for d in documents)


WRITERS = {
    "txt": as_txt,
    "csv": as_csv,
    "tsv": lambda documents: as_csv(documents, "\t"),
    "jsonl": as_jsonl,
    "ndjson": as_jsonl,
}
every_format = pytest.mark.parametrize("format", WRITERS)


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def refused(path, message, **options):
    with pytest.raises(InputError) as caught:
        list(read_documents(path, **options))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@every_format
@pytest.mark.parametrize("end", ["", ".gz"])
def test_every_format_gives_the_same_documents(format, end, tmp_path):
    path = write(tmp_path / f"mail.{format}{end}", WRITERS[format](DOCUMENTS))
    assert list(read_documents(path)) == DOCUMENTS


@every_format
def test_standard_input(format, monkeypatch):
    data = io.BytesIO(WRITERS[format](DOCUMENTS).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    given = {} if format == "txt" else {"format": "jsonl" if format == "ndjson" else format}
    assert list(read_documents("-", **given)) == DOCUMENTS


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input: it is closed"):
        next(read_documents("-"))


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    import pyarrow.parquet as pq

    path = tmp_path / "mail.parquet"
    labels, texts = zip(*DOCUMENTS, strict=True)
    pq.write_table(pa.table({"id": range(4), "label": labels, "text": texts}), path)
    assert list(read_documents(path)) == DOCUMENTS
    refused(path, "no column 'body'; there is 'id', 'label', 'text'", text="body")
    refused(path, "row 1, 'id': expected text, got '0'", text="id")
    numbers = pa.table({"label": pa.array([1.5, None, float("nan")]), "text": ["a", None, "c"]})
    pq.write_table(numbers, path)
    assert list(read_documents(path)) == [("1.5", "a"), (None, ""), (None, "c")]
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "cannot be read as Parquet")
    with pytest.raises(InputError, match="standard input: Parquet is read from a file"):
        read_documents("-", format="parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"discem\[parquet\]"):
        list(read_documents(write(tmp_path / "mail.parquet", b"")))


def test_several_files_of_several_formats(tmp_path):
    paths = [write(tmp_path / f"a.{end}", WRITERS[end](DOCUMENTS)) for end in ("txt", "jsonl")]
    assert list(read_documents(paths)) == 2 * DOCUMENTS
    assert list(read_documents([str(path) for path in paths])) == 2 * DOCUMENTS


def test_documents_are_read_as_they_are_asked_for(monkeypatch):
    class Input:
        read = 0

        def readline(self, size):
            Input.read += 1
            return b"ham\t%d\n" % Input.read

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Input()))
    documents = read_documents("-")
    assert Input.read == 0
    assert next(documents) == ("ham", "1")
    assert next(batches(documents, 3))[-1] == ("ham", "4")
    assert Input.read == 4


def test_parquet_is_read_in_batches(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    import pyarrow.parquet as pq

    monkeypatch.setattr("discem.io.documents._ROWS_AT_ONCE", 10)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    path = tmp_path / "mail.parquet"
    pq.write_table(pa.table({"label": ["a"] * 95, "text": [str(i) for i in range(95)]}), path)
    assert [document.text for document in read_documents(path)] == [str(i) for i in range(95)]


def test_batches():
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []


@pytest.mark.parametrize("good", [2, 3])
def test_a_bad_line_comes_after_the_good_ones(good):
    def lines():
        yield from range(good)
        raise InputError("line 4")

    found = []
    with pytest.raises(InputError, match="line 4"):
        for batch in batches(lines(), 2):
            found += batch
    assert found == list(range(good))


def test_columns_have_names(tmp_path):
    for end, content in (("csv", "y,body\n1,hello\n"), ("jsonl", '{"body": "hello", "y": 1}\n')):
        path = write(tmp_path / f"mail.{end}", content)
        assert list(read_documents(path, text="body", label="y")) == [("1", "hello")]


def test_labels_that_may_be_absent(tmp_path):
    txt = write(tmp_path / "mail.txt", "ham\thello\nno tab\n\n")
    assert list(read_documents(txt, labels="optional")) == [
        ("ham", "hello"),
        (None, "no tab"),
        (None, ""),
    ]
    assert next(read_documents(txt, labels="ignored")) == (None, "ham\thello")
    for end, content in (("csv", "text\nhello\n"), ("jsonl", '{"text": "hello"}\n')):
        path = write(tmp_path / f"mail.{end}", content)
        refused(path, "no column 'label'; there is 'text'")
        assert list(read_documents(path, labels="optional")) == [(None, "hello")]
    with_label = write(tmp_path / "mail.csv", "label,text\nham,hello\n")
    assert list(read_documents(with_label, labels="ignored")) == [(None, "hello")]


def test_long_fields_byte_order_marks_and_empty_lines(tmp_path):
    long = "word " * 100_000
    path = write(tmp_path / "mail.csv", f"\ufefflabel,text\n\nham,{long}\n\n")
    assert list(read_documents(path)) == [("ham", long)]
    path = write(tmp_path / "mail.csv", 'label,text\nham,"two\nlines"\n')
    assert list(read_documents(path)) == [("ham", "two\nlines")]


def test_labels_of_json(tmp_path):
    lines = [json.dumps({"text": None, "label": label}) for label in (3, True, None, "")]
    path = write(tmp_path / "mail.jsonl", "\n\n".join(lines))
    assert [document.label for document in read_documents(path)] == ["3", "true", None, None]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "ham\thello\nno tab\n", "a.txt, line 2: expected label<TAB>text, got no tab"),
        ("a.txt", b"ham\thello\nham\tna\xefve\n", "line 2: cannot be read as UTF-8 text: invalid"),
        ("a.txt", "", "no documents in it"),
        ("a.csv", "", "no documents in it"),
        ("a.csv", "label,text\n", "no documents in it"),
        ("a.jsonl", "\n", "no documents in it"),
        ("a.csv", "class,text\nham,hello\n", "no column 'label'; there is 'class', 'text'"),
        ("a.csv", "label,text\nham,a, b\n", "line 2: 3 columns, but the header has 2"),
        ("a.tsv", "label\ttext\nham\n", "line 2: 1 columns, but the header has 2"),
        ("a.csv", 'label,text\nham,"a\nb\n', "line 3: unexpected end of data"),
        ("a.csv", b"label,text\nham,\xff\n", "line 2: cannot be read as UTF-8"),
        ("a.jsonl", '{"label": "ham"}\n', "line 1: no column 'text'; there is 'label'"),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text"\n',
            "line 2: cannot be read as JSON",
        ),
        ("a.json", '["ham", "hello"]\n', 'line 1: expected a JSON object, got \'["ham", '),
        ("a.jsonl", '{"text": 5, "label": 1}\n', "line 1, 'text': expected text, got '5'"),
        ("a.jsonl", '{"text": "a", "label": [1]}\n', "line 1, 'label': expected one label"),
        ("a.dat", "ham\thello\n", "does not tell the format; add --format, one of txt, csv, tsv"),
        ("a.gz", "ham\thello\n", "does not tell the format"),
        ("a.parquet.gz", "", "Parquet is read from a file of its own"),
        ("a.csv", "text,label,text\nb,a,c\n", "more than one column is named 'text'"),
        ("a.tsv", "label\tlabel\ttext\na\tb\tc\n", "more than one column is named 'label'"),
        ("a.jsonl", '{"text": "a", "label": 1, "text": "b"}\n', "one field is named 'text'"),
        ("a.jsonl", "[" * 100_000, "line 1: cannot be read as JSON: it is nested too deep"),
        ("a.jsonl", '{"text": ' + '{"a":' * 100_000, "JSON: it is nested too deep"),
        ("a.jsonl", '{"text": "a", "label": %s}\n' % ("9" * 5000), "value has 5000 digits"),
        ("a.jsonl", '{"text": "a\\ud800", "label": 1}\n', r"line 1: the text holds \ud800, half"),
        ("a.jsonl", '{"text": "", "label": "\\udfff"}\n', r"line 1: the label holds \udfff, half"),
        (
            "a.jsonl",
            '{"text": "a", "label": "b\\u0000"}\n',
            r"line 1, 'label': the label 'b\x00' ends",
        ),
        (
            "a.csv",
            "label,text\na,b\na\0,b\n",
            r"line 3, 'label': the label 'a\x00' ends with a NUL",
        ),
        ("a.txt", "a\tb\na\0\tb\n", r"line 2: the label 'a\x00' ends with a NUL"),
    ],
)
def test_a_bad_file_names_its_place(name, content, message, tmp_path):
    refused(write(tmp_path / name, content), message)


def test_gzip_that_is_cut_or_none(tmp_path):
    path = tmp_path / "a.txt.gz"
    lines = "".join(f"ham\t{i * 7919}\n" for i in range(20_000))
    path.write_bytes(gzip.compress(lines.encode())[:-2000])
    documents = read_documents(path)
    assert next(documents) == ("ham", "0")
    with pytest.raises(InputError, match=r"a\.txt\.gz cannot be read after line \d+: .*ended"):
        list(documents)
    path.write_bytes(b"ham\thello\n")
    refused(path, "cannot be read: Not a gzipped file")


def test_wrong_names_are_known_before_anything_is_read(tmp_path):
    good = write(tmp_path / "a.txt", "ham\thello\n")
    for bad in (tmp_path / "nosuch.txt", tmp_path / "a.unknown"):
        with pytest.raises(InputError, match=str(bad)):
            read_documents([good, bad])
    with pytest.raises(InputError, match="'xml' is unknown: use txt, csv"):
        read_documents(good, format="xml")
    (tmp_path / "folder.txt").mkdir()
    refused(tmp_path / "folder.txt", "it is a folder; give the files in it")
    refused(tmp_path, "it is a folder; give the files in it")


# --- limits ---------------------------------------------------------------------------------------


def test_other_columns_may_be_named_alike(tmp_path):
    path = write(tmp_path / "a.csv", "x,label,x,text\n1,ham,2,hello\n")
    assert list(read_documents(path)) == [("ham", "hello")]
    path = write(tmp_path / "a.jsonl", '{"label": "ham", "x": 1, "x": 2, "text": "\\u00e9"}\n')
    assert list(read_documents(path)) == [("ham", "é")]


def test_parquet_with_two_columns_of_a_name(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    import pyarrow.parquet as pq

    table = pa.table([["ham"], ["a"], ["b"]], names=["label", "text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "more than one column is named 'text'")


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("format", ["txt", "csv", "jsonl"])
def test_a_line_that_does_not_end_is_refused(format, end, tmp_path):
    long = WRITERS[format]([Document("ham", "word " * 300_000)])
    path = write(tmp_path / f"a.{format}{end}", long)
    refused(path, "longer than 1 MB; raise --max-size if that is right", max_size=1)
    (document,) = read_documents(path, max_size=2)
    assert len(document.text) == 1_500_000


def test_a_cell_of_many_lines_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", 'label,text\nham,"' + "word\n" * 300_000 + '"\n')
    refused(path, "raise --max-size if that is right", max_size=1)
    assert len(list(read_documents(path, max_size=2))) == 1


def test_packed_text_that_comes_to_far_more_than_its_size_is_refused(tmp_path):
    path = write(tmp_path / "a.txt.gz", "ham\thello\n" * 200_000)  # 2 MB in 5 KB, 15 in memory
    found = []
    with pytest.raises(InputError, match="unpacks to more than 1 MB and than 100 times its size"):
        found.extend(read_documents(path, max_size=1))
    assert sum(map(sys.getsizeof, (text for _, text in found))) < 2**20  # nor was more taken
    assert len(list(read_documents(path, max_size=16))) == 200_000
    assert len(list(read_documents(path))) == 200_000


def test_packed_text_as_it_usually_is_has_no_limit(tmp_path):
    lines = "".join(f"ham\t{i * 7919 % 10007}\n" for i in range(200_000))
    path = write(tmp_path / "a.txt.gz", lines)
    assert path.stat().st_size * 100 > len(lines) > 2**20
    assert len(list(read_documents(path, max_size=1))) == 200_000


def test_parquet_that_comes_to_far_more_than_its_size_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    import pyarrow.parquet as pq

    table = pa.table({"label": ["ham"], "text": ["word " * 400_000]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    refused(path, "unpacks to more than 1 MB and than 100 times its size", max_size=1)
    assert len(list(read_documents(path))) == 1


def test_a_device_without_end_is_refused():
    with pytest.raises(InputError, match="line 1: longer than 1 MB"):
        next(read_documents("/dev/zero", format="txt", max_size=1))
