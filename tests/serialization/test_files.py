"""Saving replaces files atomically and writes to devices, pipes and file-like objects."""

import io
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

import cygrad
from cygrad import safetensors

WAYS = {
    "cygrad": (cygrad.save, cygrad.load),
    "torch": (lambda value, path: cygrad.save(value, path, format="torch"), cygrad.load),
    "safetensors": (safetensors.save_file, safetensors.load_file),
}
OLD, NEW = {"x": cygrad.zeros(50_000)}, {"x": cygrad.ones(50_000)}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_a_file_is_replaced_and_nothing_stays_beside_it(way, tmp_path):
    save, load = way
    path = tmp_path / "f"
    save(OLD, path)
    save(NEW, path)
    assert load(path)["x"].sum().item() == 50_000
    assert os.listdir(tmp_path) == ["f"]


def test_an_error_leaves_the_old_file(way, tmp_path, monkeypatch):
    save, load = way
    path = tmp_path / "f"
    save(OLD, path)

    def fail(_):
        raise OSError("the disk is broken")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="broken"):
        save(NEW, path)
    assert load(path)["x"].sum().item() == 0
    assert os.listdir(tmp_path) == ["f"]


FULL = """
import resource, signal, sys
import cygrad
from cygrad import safetensors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
value = {"x": cygrad.ones(50_000)}
for number, save in enumerate((cygrad.save, lambda *a: cygrad.save(*a, format="torch"), safetensors.save_file)):
    try:
        save(value, sys.argv[1 + number])
    except OSError:
        print("full")
"""


def test_a_full_disk_leaves_the_old_file(tmp_path):
    paths = [tmp_path / name for name in WAYS]
    for path, (save, _) in zip(paths, WAYS.values(), strict=True):
        save(OLD, path)
    done = subprocess.run([sys.executable, "-c", FULL, *map(str, paths)], capture_output=True, text=True, check=True)
    assert done.stdout == "full\n" * 3
    for path, (_, load) in zip(paths, WAYS.values(), strict=True):
        assert load(path)["x"].sum().item() == 0
    assert sorted(os.listdir(tmp_path)) == sorted(WAYS)


KILLED = """
import sys
import cygrad
from cygrad import safetensors
number = 0
while True:
    number += 1
    value = {"x": cygrad.full((50_000,), number % 1000)}
    cygrad.save(value, sys.argv[1])
    cygrad.save(value, sys.argv[2], format="torch")
    safetensors.save_file(value, sys.argv[3])
    print(number, flush=True)
"""


def test_a_kill_leaves_a_whole_file(tmp_path):
    paths = [tmp_path / name for name in WAYS]
    for attempt in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, paths)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.011 * attempt)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for path, (_, load) in zip(paths, WAYS.values(), strict=True):
            found = load(path)["x"]
            assert found.min().item() == found.max().item() > 0


def test_rights_and_links_stay(way, tmp_path):
    save, load = way
    path, link = tmp_path / "f", tmp_path / "link"
    mask = os.umask(0o027)
    try:
        save(OLD, path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    save(NEW, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(path)["x"].sum().item() == 50_000


def test_a_folder_that_takes_no_new_file(way, tmp_path, monkeypatch):
    save, load = way
    save(OLD, tmp_path / "f")

    def refuse(*_):
        raise PermissionError("no new file here")
    monkeypatch.setattr(os, "open", refuse)
    save(NEW, tmp_path / "f")
    assert load(tmp_path / "f")["x"].sum().item() == 50_000


def test_devices_and_pipes(way, tmp_path):
    save, load = way
    save(NEW, "/dev/null")
    with pytest.raises(OSError, match="space"):
        save(NEW, "/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe, content = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: content.append(pipe.read_bytes()))
    reader.start()
    save(NEW, pipe)
    reader.join()
    (tmp_path / "f").write_bytes(content[0])
    assert load(tmp_path / "f")["x"].sum().item() == 50_000


class Sink:
    """The least that can be written to."""

    def __init__(self):
        self.content = b""

    def write(self, content):
        self.content += content
        return len(content)


class Source:
    """The least that can be read from."""

    def __init__(self, content):
        self.content = content

    def read(self):
        return self.content


def test_file_like_objects(way, tmp_path):
    save, _ = way
    sink, file = Sink(), io.BytesIO()
    save(NEW, file)
    if save is safetensors.save_file:
        assert safetensors.load(file.getvalue())["x"].sum().item() == 50_000
        return
    save(NEW, sink)
    for content in sink.content, file.getvalue():
        assert cygrad.load(Source(content))["x"].sum().item() == 50_000
    with open(tmp_path / "f", "wb") as opened:
        save(NEW, opened)
    with open(tmp_path / "f", "rb") as opened:
        assert cygrad.load(opened)["x"].sum().item() == 50_000


def test_names_of_every_kind(way, tmp_path, monkeypatch):
    save, load = way
    monkeypatch.chdir(tmp_path)
    for name in "f", b"g", "ä" * 100, "x" * 255:
        save(NEW, name)
        assert load(name)["x"].sum().item() == 50_000
    for name in "missing/f", ".":
        with pytest.raises((FileNotFoundError, IsADirectoryError), match=f"{tmp_path}/?(missing/f)?'$"):
            save(NEW, name)


def test_equal_contents_make_equal_files(way, tmp_path):
    save, _ = way
    save(NEW, tmp_path / "f")
    save(NEW, tmp_path / "g")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


def test_tensors_without_elements_are_refused(way, tmp_path):
    save, _ = way
    for shape in ((3,), (2000, 2000)):
        with pytest.raises((NotImplementedError, TypeError, ValueError), match="meta"):
            save({"x": cygrad.ones(shape, device="meta")}, tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_interrupts_leave_no_file_beside_it(way, tmp_path):
    _, load = way
    assert subprocess.run([sys.executable, "-c", f"""
import _thread, random, signal, threading, time
import cygrad
from tests.serialization.test_files import WAYS
save = WAYS[{next(name for name, pair in WAYS.items() if pair is way)!r}][0]
stop = time.monotonic() + 2
saving, interrupts = False, 0
def handler(*arguments):
    global interrupts
    if saving:                        # interrupts elsewhere in this program are no concern of the test
        interrupts += 1
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
def interrupt():
    while time.monotonic() < stop - 0.2:
        time.sleep(random.random() * 0.003)
        _thread.interrupt_main()
value = {{"x": cygrad.ones(50_000)}}
save(value, {str(tmp_path / "x")!r})
threading.Thread(target=interrupt, daemon=True).start()
while time.monotonic() < stop:
    try:
        saving = True
        save(value, {str(tmp_path / "x")!r})
        saving = False
    except KeyboardInterrupt:
        saving = False
assert interrupts > 20, interrupts
"""], check=False, timeout=60).returncode == 0
    assert os.listdir(tmp_path) == ["x"]
    assert cygrad.equal(load(tmp_path / "x")["x"], NEW["x"])


class Slow(io.RawIOBase):
    """A file that takes a few bytes at a time."""

    def __init__(self, most):
        self.content, self.most = io.BytesIO(), most

    def write(self, content):
        return self.content.write(bytes(content)[:self.most]) if self.most else None

    def writable(self):
        return True

    def seekable(self):
        return True

    def seek(self, *place):
        return self.content.seek(*place)

    def tell(self):
        return self.content.tell()


def test_a_file_that_takes_less_than_it_gets(way):
    save, _ = way
    slow, whole = Slow(7), io.BytesIO()
    save({"x": cygrad.arange(100)}, slow)
    save({"x": cygrad.arange(100)}, whole)
    assert slow.content.getvalue() == whole.getvalue()
    with pytest.raises(BlockingIOError, match="accepts no more data"):
        save({"x": cygrad.arange(100)}, Slow(0))
