"""What runs the pages notices when a page is wrong."""

from __future__ import annotations

import pytest

from docs.pages import blocks, run

WRONG = {
    "value": "1 + 1    # 3",
    "value below": "[1, 2]\n# [1,\n#  3]",
    "value with dots": "'part-1.parquet'    # 'file-...'",
    "print": "print('a')\n# b",
    "print in a block": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e)\n    # fine",
}
RIGHT = {
    "value": "1 + 1    # 2",
    "value below": "[1, 2]\n# [1,\n#  2]",
    "value with dots": "'part-1.parquet'    # 'part-...'",
    "print": "print('a', 1)    # a 1",
    "loop": "for i in (1, 2):\n    print(i)\n    # 1\n    # 2",
    "prose": "x = 1\nx    # the number",
}


def as_page(python: str) -> str:
    return f"# Title\n\n```python\n{python}\n```\n"


@pytest.mark.parametrize("python", WRONG.values(), ids=WRONG)
def test_wrong_comments_fail(python: str) -> None:
    with pytest.raises(AssertionError, match=r"^page:[45]"):
        run(as_page(python), "page", "sqlite")


@pytest.mark.parametrize("python", RIGHT.values(), ids=RIGHT)
def test_right_comments_pass(python: str) -> None:
    run(as_page(python), "page", "sqlite")


def test_blocks() -> None:
    text = (
        "<!-- setup\na = 1\n-->\n\n"
        "<!-- only: duckdb -->\n```sql\nSELECT 1\n```\n\n"
        "```text\nx\n```\n"
    )
    found = [(block.language, block.text, block.line, block.only) for block in blocks(text)]
    assert found == [
        ("python", "a = 1\n", 2, None),
        ("sql", "SELECT 1\n", 7, "duckdb"),
        ("text", "x\n", 11, None),
    ]


def test_errors_point_into_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(as_page("a = 0\n\n1 / a"), "page", "sqlite")
    assert caught.traceback[-1].lineno + 1 == 6
