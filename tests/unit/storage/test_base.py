from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from deltalakedb.errors import ObjectNotFound, StorageError, UnsupportedByBackend, UriError
from deltalakedb.storage import base
from deltalakedb.storage.base import Store, filesystem, local_path, remove_uris, resolve

ODD = "x=a b%2F#?/ü ~*'\".json"
_names = itertools.count()


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        return Store(str(tmp_path / "not there yet"))
    return Store(f"memory://test{next(_names)}/some/folder")


@pytest.mark.parametrize("path", ["a", "_delta_log/0.json", ODD])
def test_what_is_put_is_got(store, path):
    assert not store.exists(path)
    assert store.put_if_absent(path, b"one")
    assert store.exists(path)
    assert store.get(path) == b"one"


def test_nothing_is_overwritten(store):
    assert store.put_if_absent("a", b"one")
    assert not store.put_if_absent("a", b"two")
    assert store.get("a") == b"one"


def test_missing_files_have_their_own_error(store):
    with pytest.raises(ObjectNotFound) as caught:
        store.get("no/such")
    assert caught.value.path == f"{store.location}/no/such"
    assert "no/such does not exist" in str(caught.value)


def test_list_is_sorted_and_goes_down(store):
    assert store.list() == []
    for path in ("log/b", "log/a", "log/sub/c", "logs/d", "e"):
        store.put_if_absent(path, path.encode())
    listed = store.list("log")
    assert [entry.path for entry in listed] == ["log/a", "log/b", "log/sub/c"]
    assert [entry.size for entry in listed] == [5, 5, 9]
    assert all(entry.modified > 1_600_000_000_000 for entry in listed)
    assert [e.path for e in store.list("log", start_after="log/a")] == ["log/b", "log/sub/c"]
    assert [e.path for e in store.list()] == ["e", "log/a", "log/b", "log/sub/c", "logs/d"]
    assert store.list("nothing") == []


def test_deleting_what_is_not_there_is_fine(store):
    store.put_if_absent("a", b"")
    store.delete(["a", "b", "c/d"])
    assert store.list() == []


def test_memory_is_shared_by_name():
    Store("memory://shared/x").put_if_absent("a", b"1")
    assert Store("memory://shared").get("x/a") == b"1"
    assert not Store("memory://other").exists("x/a")


@pytest.mark.parametrize("path", ["../up", "a/../../up", ""])
def test_paths_that_cannot_be_are_refused(store, path):
    with pytest.raises(StorageError):
        store.get(path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        Store(str(tmp_path / "file")).put_if_absent("below", b"")
    assert caught.value.path.endswith("file/below")


# --- locations ------------------------------------------------------------------------------------


def test_every_way_to_write_a_folder_is_one_location(tmp_path, monkeypatch):
    folder = tmp_path / "my table#1"
    monkeypatch.chdir(tmp_path)
    uri = folder.as_uri()
    assert "%20" in uri
    for written in (str(folder), f"{folder}/", "my table#1", "./x/../my table#1", uri, f"{uri}/"):
        assert resolve(written) == uri
    assert resolve(folder) == uri
    assert resolve(uri.replace("file://", "file://localhost")) == uri
    assert local_path(uri) == str(folder)


def test_object_store_locations_stay_as_they_are():
    assert resolve("s3://bucket/a%20b/") == "s3://bucket/a%20b"
    assert resolve("abfss://c@account.dfs.core.windows.net/x") == (
        "abfss://c@account.dfs.core.windows.net/x"
    )


@pytest.mark.parametrize("location", ["ftp://host/x", "", "deltasql://sqlite/a.db"])
def test_other_locations_are_refused(location):
    with pytest.raises(UriError):
        resolve(location)


def test_another_machines_files_are_refused():
    with pytest.raises(StorageError, match="another machine"):
        Store("file://host/x")


def test_filesystem_leads_to_the_same_files(tmp_path):
    store = Store(str(tmp_path / "a b"))
    store.put_if_absent("x/y", b"data")
    system, root = filesystem(store.location)
    assert isinstance(system, pafs.LocalFileSystem)
    with system.open_input_file(f"{root}/x/y") as file:
        assert file.read() == b"data"


def test_filesystems_of_the_clouds_are_arrows_own():
    system, root = filesystem("gs://bucket/table")
    assert (type(system).__name__, root) == ("GcsFileSystem", "bucket/table")
    system, root = filesystem("abfss://container@account.dfs.core.windows.net/table")
    assert (type(system).__name__, root) == ("AzureFileSystem", "container/table")


def test_memory_has_no_place_for_data_files():
    with pytest.raises(UnsupportedByBackend) as caught:
        filesystem("memory://x")
    assert caught.value.backend == "memory"


# --- taking files away ----------------------------------------------------------------------------


def test_removed_files_take_their_empty_folders_along(tmp_path):
    paths = ["txn/p=1/q=%20/a", "txn/p=1/q=%20/b", "txn/p=2/c", "kept/p=1/d", "e f"]
    for path in [*paths, "kept/p=2/stays"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    remove_uris([(tmp_path / path).as_uri() for path in paths[:3]])
    remove_uris([*(str(tmp_path / path) for path in paths[3:]), str(tmp_path / "never/was")])
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")}
    assert left == {"kept", "kept/p=2", "kept/p=2/stays"}


def test_removed_from_memory():
    store = Store("memory://removing/t")
    store.put_if_absent("a b/c", b"")
    remove_uris([f"{store.location}/a b/c", f"{store.location}/d"])
    assert store.list() == []


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [OSError, ValueError, pa.ArrowInvalid])
def test_credentials_are_never_shown(failure):
    secret = "https://account/x?sv=1&sig=topsecret"
    with (
        pytest.raises(StorageError) as caught,
        base._translated("s3://key:topsecret@bucket/x"),
    ):
        raise failure(f"403 for {secret}\nDebug source: {secret}")
    shown = f"{caught.value} {caught.value.path} {caught.value.__cause__}"
    assert "topsecret" not in shown
    assert caught.value.__suppress_context__
    assert "topsecret" not in repr(Store("memory://key:topsecret@bucket/x"))
