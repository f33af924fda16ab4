"""README quotes the attention example as it stands, so that what a newcomer copies is what the tests compile."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_readme_quotes_the_example():
    example = (ROOT / "examples" / "flash_attention.cpp").read_text()
    assert f"```cpp\n{example}```" in (ROOT / "README.md").read_text(), (
        "README.md must quote examples/flash_attention.cpp whole: copy it there"
    )
