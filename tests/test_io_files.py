"""A file that is written atomically is whole or is not there, and leaves nothing else behind."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import discem
from discem.io import files
from discem.io.files import is_same_file, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")


@pytest.fixture(params=["new", "old"])
def path(request, tmp_path):
    """Of a file that is not there, or is."""
    path = tmp_path / "result.txt"
    if request.param == "old":
        path.write_text("old")
    return path


@pytest.fixture
def umask():
    """Sets the umask for the time of a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def seen(folder):
    """What is in a folder."""
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


# --- whole ----------------------------------------------------------------------------------------


def test_text_is_utf_8(path):
    with write_atomically(path) as file:
        file.write("θ and ")
        file.write("μ\n")
    assert path.read_text(encoding="utf-8") == "θ and μ\n"
    assert list(seen(path.parent)) == [path.name]


def test_bytes_stay_as_they_are(path):
    with write_atomically(str(path), "wb") as file:
        file.write(b"\r\n\x00\xff")
    assert seen(path.parent) == {path.name: b"\r\n\x00\xff"}


def test_nothing_is_seen_before_the_end(path):
    before = path.read_bytes() if path.exists() else None
    with write_atomically(path) as file:
        file.write("new")
        file.flush()
        assert (path.read_bytes() if path.exists() else None) == before
    assert path.read_text() == "new"


def test_a_file_of_the_folder_one_is_in(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with write_atomically(path.name) as file:
        file.write("new")
    assert seen(path.parent) == {path.name: b"new"}


def test_the_longest_of_names(tmp_path):
    path = tmp_path / ("n" * 255)
    with write_atomically(path) as file:
        file.write("new")
    assert seen(tmp_path) == {path.name: b"new"}


def test_of_two_writers_the_last_to_finish_wins_whole(path):
    with write_atomically(path) as first:
        first.write("first, " * 1000)
        with write_atomically(path) as second:
            second.write("second")
        assert path.read_text() == "second"
    assert seen(path.parent) == {path.name: b"first, " * 1000}


def test_what_is_replaced_is_on_the_disk(path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), steps.append("fsync")))
    monkeypatch.setattr(os, "replace", lambda *names: (replace(*names), steps.append("replace")))
    with write_atomically(path) as file:
        file.write("new")
    assert steps == ["fsync", "replace"]


# --- or not at all --------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_a_block_that_fails_changes_nothing(path, error, mode):
    before = seen(path.parent)
    with pytest.raises(error, match="enough"), write_atomically(path, mode) as file:
        file.write("half" if mode == "w" else b"half")
        file.flush()
        raise error("enough")
    assert seen(path.parent) == before


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_end_that_fails_changes_nothing(path, monkeypatch, step, error):
    def fail(*_):
        raise error("enough")

    before = seen(path.parent)
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(error, match="enough"), write_atomically(path) as file:
        file.write("new")
    assert seen(path.parent) == before


def test_a_full_disk_changes_nothing(path):
    """The limit on the size of a file fails the writing itself, as late as the last flush."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    before = seen(path.parent)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="too large"), write_atomically(path) as file:
            file.write("n" * 2000)  # still in the buffer
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert seen(path.parent) == before


def test_a_folder_that_is_not_there_is_named_as_the_caller_named_it(tmp_path):
    path = tmp_path / "nowhere" / "result.txt"
    with pytest.raises(FileNotFoundError) as caught, write_atomically(path):
        pytest.fail("there is nothing to write to")
    assert caught.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(OSError, match="it is a folder"), write_atomically(tmp_path):
        pytest.fail("there is nothing to write to")
    assert tmp_path.is_dir()


# --- as an ordinary file --------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask, mask):
    umask(mask)
    (tmp_path / "ordinary").write_text("")
    with write_atomically(tmp_path / "result"):
        pass
    assert permissions(tmp_path / "result") == permissions(tmp_path / "ordinary") == 0o666 & ~mask


@posix
@pytest.mark.parametrize("mode", [0o600, 0o666, 0o640, 0o755])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, umask, mode):
    path = tmp_path / "result"
    path.write_text("old")
    path.chmod(mode)
    with write_atomically(path) as file:
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert permissions(temporary) == mode  # while it is written, too
        file.write("new")
    assert permissions(path) == mode
    assert path.read_text() == "new"


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_leads_to_its_file(tmp_path, there):
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "result", tmp_path / "link"
    if there:
        path.write_text("old")
    link.symlink_to(path)
    with write_atomically(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert seen(path.parent) == {"result": b"new"}


@posix
def test_a_pipe_or_a_device_is_refused(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for special in (path, os.devnull):
        with pytest.raises(OSError, match="not a file") as caught, write_atomically(special):
            pytest.fail("there is nothing to write to")
        assert caught.value.filename == str(special)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@posix
def test_one_file_by_many_names(tmp_path):
    path, link, hard = (tmp_path / name for name in ("file", "link", "hard"))
    path.write_text("")
    link.symlink_to(path)
    hard.hardlink_to(path)
    assert all(is_same_file(path, each) for each in (path, link, hard, str(path)))
    with path.open() as file:
        assert is_same_file(hard, file.fileno())
    (tmp_path / "other").write_text("")
    assert not is_same_file(path, tmp_path / "other")
    assert not is_same_file(tmp_path / "nowhere", tmp_path / "nowhere")


# --- after a kill ---------------------------------------------------------------------------------

WRITING = """
import sys
from discem.io.files import write_atomically
with write_atomically(sys.argv[1]) as file:
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writing(path):
    """A process that is in the middle of writing to the file."""
    sources = str(Path(discem.__file__).parents[1])
    command = [sys.executable, "-c", WRITING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": sources}, **pipes) as process:
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def temporaries(path):
    return [each for each in path.parent.iterdir() if each.name.endswith(".part")]


@posix
def test_what_a_killed_process_left_is_removed_by_the_next(path, writing):
    assert len(temporaries(path)) == 1
    writing.kill()
    writing.wait()
    assert len(temporaries(path)) == 1
    with write_atomically(path.parent / "another") as file:
        file.write("new")
    assert not temporaries(path)
    assert (path.parent / "another").read_text() == "new"


@posix
def test_what_another_process_is_writing_is_left_alone(path, writing):
    with write_atomically(path) as file:
        file.write("new")
    assert path.read_text() == "new"
    assert len(temporaries(path)) == 1
    writing.communicate(timeout=30)
    assert writing.returncode == 0
    assert seen(path.parent) == {path.name: b""}  # the last to finish wins


@posix
def test_what_only_looks_like_ours_is_left_alone(tmp_path):
    name = ".discem-0123456789abcdef.part"
    for folder in ("folder", "link", "pipe", "named"):
        (tmp_path / folder).mkdir()
    (tmp_path / "folder" / name).mkdir()
    (tmp_path / "link" / name).symlink_to(tmp_path / "named" / "mail.part")
    os.mkfifo(tmp_path / "pipe" / name)
    (tmp_path / "named" / "mail.part").write_text("mine")
    for folder in tmp_path.iterdir():
        before = sorted(each.name for each in folder.iterdir())
        with write_atomically(folder / "result"):
            pass
        assert sorted(each.name for each in folder.iterdir()) == sorted([*before, "result"])


@posix
def test_a_file_taken_for_an_orphan_before_it_is_locked_is_made_again(path, monkeypatch):
    lock, taken = files._lock, []

    def late(descriptor):
        if not taken:
            taken.extend(temporaries(path))
            files._remove_orphans(str(path.parent))
            assert not temporaries(path)
        return lock(descriptor)

    monkeypatch.setattr(files, "_lock", late)
    with write_atomically(path) as file:
        file.write("new")
    assert len(taken) == 1
    assert seen(path.parent) == {path.name: b"new"}
