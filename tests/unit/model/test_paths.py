from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.errors import InvalidCommit
from deltalakedb.model.partition import hive_path
from deltalakedb.model.paths import (
    canonical,
    check_inside,
    decode,
    encode,
    is_absolute,
    join,
    spellings,
)

segments = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=8
).filter(lambda text: text not in (".", ".."))
names = st.lists(segments, min_size=1, max_size=4).map("/".join)


@given(names)
def test_any_name_survives_the_log(name):
    path = encode(name)
    assert decode(path) == name
    assert not is_absolute(path)
    assert path.isascii()
    assert canonical(path) == name


@given(names, names)
def test_canonical_is_equal_for_the_same_file_only(one, two):
    assert (canonical(encode(one)) == canonical(encode(two))) == (one == two)


@given(names, st.sampled_from(["/t", "/t/", "file:///t", "file:/t", "s3://b/t", "s3a://b/t/"]))
def test_absolute_paths_inside_the_table_are_the_relative_ones(name, root):
    heads = ["s3://b", "s3a://b"] if root.startswith("s3") else ["file:", "file://"]
    for head in ("", *heads):
        assert canonical(f"{head}/t/{encode(name)}", root) == name
    assert canonical(f"/other/{encode(name)}", root) != name


@given(names)
def test_spellings_are_the_same_file(name):
    for path in (encode(name), f"file:/x/{encode(name)}", f"s3a://b/{encode(name)}"):
        found = list(spellings(path))
        assert path not in found
        # A decoded name may hold a percent sign, which then means something else.
        for form in found:
            if "%" not in name:
                assert canonical(form) == canonical(path) or is_absolute(form) != is_absolute(path)


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("a%20b", "a b"),
        ("a b", "a%20b"),
        ("/x/y", "file:/x/y"),
        ("/x/y", "file:///x/y"),
        ("file:/x/y", "/x/y"),
        ("file:///x/a%20b", "/x/a b"),
        ("s3a://b/x", "s3://b/x"),
        ("%C3%BC%20", "ü%20"),
    ],
)
def test_known_spellings(path, other):
    assert other in list(spellings(path))
    assert canonical(path) == canonical(other)


def test_a_plain_name_has_one_spelling():
    assert list(spellings("part-00000.parquet")) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.parquet", "a.parquet"),
        ("x=1/.hidden/a..b", "x=1/.hidden/a..b"),
        ("./a//b/./c", "a/b/c"),
        ("special%20p@%23h", "special p@#h"),
        ("x=A%252FA", "x=A%2FA"),
        ("/some/path", "file:///some/path"),
        ("file:/some/path", "file:///some/path"),
        ("file:///some/path", "file:///some/path"),
        ("FILE:///some/path", "file:///some/path"),
        ("s3n://b/a%20b", "s3://b/a b"),
        ("abfs://c@a.example/x", "abfss://c@a.example/x"),
        ("%zz%", "%zz%"),
    ],
)
def test_canonical(path, expected):
    assert canonical(path) == expected


def test_a_slash_in_front_is_the_tables_file_system():
    assert canonical("/x", "s3://b/t") == "s3://b/x"
    assert canonical("file:/x", "s3://b/t") == "file:///x"
    assert canonical("s3://c/t/f", "s3://b/t") == "s3://c/t/f"
    assert canonical("/t2/f", "/t") == "file:///t2/f"
    assert canonical("/a%20b/f", "/a b") == "f"
    assert canonical("/a b/f", "file:///a%20b") == "f"


def test_bytes_that_are_no_text_stay_apart():
    assert canonical("%FF") != canonical("%FE")
    assert encode(decode("%FF")) == "%FF"


def test_a_hive_folder_is_escaped_once_more():
    assert encode(hive_path([("x", "A/A")])) == "x=A%252FA"
    assert encode(hive_path([("c2", "+ =%0")])) == "c2=+%20%253D%25250"


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "x=1/part-0.parquet",
        "_change_data/cdc-0.parquet",
        "_delta_log_not/a",
        "a..b/..c",
        "x=%2E%2E.",
        "time=12:30/f",
        "a%2Fb",
    ],
)
def test_paths_inside(path):
    check_inside(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "./",
        "..",
        "../a",
        "a/../../b",
        "a/..",
        "%2e%2e/a",
        "a%2F..%2F..%2Fb",
        "..\\a",
        "..//Users/x",
        "a\0b",
        "a%00b",
        "/etc/passwd",
        "file:/etc/passwd",
        "s3://bucket/x",
        "_delta_log/00000000000000000000.json",
        "./_delta_log/x",
        "%5Fdelta_log/x",
    ],
)
def test_paths_that_are_refused(path):
    with pytest.raises(InvalidCommit) as caught:
        check_inside(path)
    assert caught.value.path == path
    assert caught.value.rule


def test_absolute_paths_may_be_allowed_but_never_climb():
    check_inside("s3://bucket/x", absolute="allow")
    check_inside("/x/y", absolute="allow")
    with pytest.raises(InvalidCommit):
        check_inside("/x/../y", absolute="allow")


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("s3://b/t", "a%20b", "s3://b/t/a%20b"),
        ("s3://b/t/", "a", "s3://b/t/a"),
        ("/data/t", "x%20y/a", "/data/t/x y/a"),
        ("file:///data/t", "x%20y/a", "file:///data/t/x%20y/a"),
        ("/data/t", "s3://b/x", "s3://b/x"),
        ("/data/t", "/other/a%20b", "/other/a b"),
        ("s3://b/t", "/other/a", "s3://b/other/a"),
    ],
)
def test_join(root, path, expected):
    assert join(root, path) == expected
