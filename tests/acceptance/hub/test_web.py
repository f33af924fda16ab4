"""The registry's pages, in a browser without scripts and over plain HTTP. Pictures: build/results/acceptance/web."""

import json
import os
import re
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from browser import Browser, find_chromium
from pulling import Client
from registry import KERNELS, ROOT, Registry
from website import HOSTILE_BRANCH, LONG_OWNED, commit, create, fill

PICTURES = ROOT / "build" / "results" / "acceptance" / "web"
PAGES = {
    "all": "/",
    "search": "/?search=SCALE",
    "nothing": "/?search=" + "no-such-name" * 15,
    "last-page": "/kernels?page=2",
    "owner": "/trusted",
    "package": "/kernels/trusted/my-scale",
    "old-version": "/kernels/trusted/my-scale?revision=v0",
    "long-name": f"/kernels/{LONG_OWNED}",
    "hostile": "/kernels/alice/hostile",
    "gated": "/kernels/alice/gated",
    "empty": "/kernels/alice/empty",
    "model": "/alice/tiny",
    "folder": "/kernels/trusted/my-scale/tree/1.2.0/build/neuron-header",
    "file": "/kernels/trusted/my-scale/blob/1.2.0/kernel.toml",
    "binary": "/kernels/trusted/my-scale/blob/main/docs/binary.bin",
    "not-found": "/kernels/alice/nowhere",
}


class Answer:
    def __init__(self, registry: Registry, path: str, headers: dict[str, str] | None = None) -> None:
        request = urllib.request.Request(registry.endpoint + path, headers={"Accept": "text/html", **(headers or {})})
        try:
            done = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            done = error
        with done:
            self.status, self.headers, self.body = done.status, done.headers, done.read()
        self.text = self.body.decode(errors="replace")


class Links(HTMLParser):
    """Addresses in a page, and the fields to copy, by id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.fields: dict[str, str] = {}
        self.area: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.found += [value for name in ("href", "src", "action") if (value := values.get(name))]
        if values.get("class") == "copy":
            self.area = values["id"] or ""
            self.fields[self.area] = values.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self.area and not self.fields[self.area]:
            self.fields[self.area] = data
            self.area = None


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    with Registry(KERNELS, folder / "root") as registry:
        fill(registry, KERNELS, folder)
        yield registry


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = find_chromium()
    if chromium is None:
        pytest.fail("there is no browser: install the Debian package chromium, as `make acceptance` does")
    browser = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window(registry, browser, name, width):
    browser.open(registry.endpoint + PAGES[name], width)
    browser.screenshot(PICTURES / f"{name}-{width}.png")
    wide, room = browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert room == width and wide <= room
    refused = [error for error in browser.errors if "404" not in error or name != "not-found"]
    assert refused == []


@pytest.mark.parametrize("name", ["package", "all"])
def test_pages_are_dark_where_the_system_is(registry, browser, name):
    grounds = []
    for dark in (False, True):
        browser.open(registry.endpoint + PAGES[name], 1280, dark)
        grounds.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    browser.screenshot(PICTURES / f"{name}-dark.png")
    assert grounds == ["rgb(255, 255, 255)", "rgb(18, 22, 28)"]


def test_a_screen_reader_finds_its_way(registry, browser):
    browser.open(registry.endpoint + PAGES["package"], 1280)
    roles = browser.roles()
    kinds = [role for role, _ in roles]
    assert all(kinds.count(role) == 1 for role in ("banner", "main", "search", "contentinfo", "complementary"))
    assert "navigation" in kinds
    unnamed = [
        role for role, name in roles if role in ("link", "button", "textbox", "searchbox", "region") and not name
    ]
    assert unnamed == []
    levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => Number(h.tagName[1]))")
    assert levels.count(1) == 1


def test_the_card_shows_its_own_picture_and_runs_nothing(registry, browser):
    browser.open(registry.endpoint + PAGES["package"], 1280)
    pictures = browser.evaluate("[...document.querySelectorAll('.card img')].map(i => [i.alt, i.naturalWidth])")
    assert pictures == [["logo", 48]]
    assert browser.evaluate("document.title") == "trusted/my-scale · kernels"
    assert browser.evaluate("document.querySelectorAll('script, [onerror], [style]').length") == 0
    assert browser.evaluate("document.getElementById('card-shapes').textContent.trim()") == "Shapes"
    text = Answer(registry, PAGES["package"]).text
    assert "library_name" not in text and "licence: apache-2.0" in text and "javascript:" not in text
    assert "tracker.example.com" in text and "badges.example.com" not in text  # a link; only its words in a link


def brightness(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_ground():
    """WCAG 2.2, 1.4.3: a contrast of 4.5 at least."""
    style = (ROOT / "hub" / "registry" / "web" / "style.css").read_text()
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in re.findall(r":root \{.*?\}", style, re.S)]
    assert len(themes) == 2
    for theme in themes:
        pairs = [(a, b) for a in ("text", "quiet", "link", "warn") for b in ("ground", "panel")]
        for text, ground in [*pairs, ("on-strong", "strong")]:
            light, dark = sorted((brightness(theme[text]), brightness(theme[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_every_link_leads_somewhere(registry):
    waiting, seen = ["/"], set()
    while waiting:
        path = waiting.pop()
        if path in seen or "/many-" in path:
            continue
        seen.add(path)
        answer = Answer(registry, path)
        assert answer.status == 200 or "/gated/" in path, (path, answer.status)
        if answer.headers.get_content_type() != "text/html" or "?search" in path:
            continue
        for link in Links(answer.text).found:
            whole = urldefrag(urljoin(registry.endpoint + path, link))[0]
            if whole.startswith(registry.endpoint):
                waiting.append(whole.removeprefix(registry.endpoint) or "/")
            else:
                assert whole.startswith("https://"), whole
    assert {"/kernels?page=2", "/kernels/trusted/my-scale/resolve/1.2.0/kernel.toml", "/alice/tiny"} <= seen


def run_shown_commands(registry: Registry, tmp_path: Path, page: str) -> subprocess.CompletedProcess[str]:
    fields = Links(Answer(registry, page).text).fields
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kernels").symlink_to(Path(KERNELS).resolve())
    environment = Client(tmp_path / "home", registry.endpoint).environment(PATH=f"{programs}:{os.environ['PATH']}")
    del environment["HF_ENDPOINT"]
    lines = f"{fields['use-endpoint']}\n{fields['use-pull']}\n"
    return subprocess.run(["sh", "-e", "-c", lines], env=environment, cwd=tmp_path, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("page", "command", "file"),
    [
        ("/kernels/trusted/my-scale", "trusted/my-scale@1.2.0", "build/neuron-header/include/my_scale/scale.hpp"),
        ("/kernels/trusted/my-scale?revision=0.1.0", "trusted/my-scale@0.1.0", "build/neuron-header/metadata.json"),
        ("/kernels/trusted/my-scale?revision=v1", "trusted/my-scale@1", "build/neuron-header/metadata.json"),
        ("/alice/tiny", "--type model --all alice/tiny@main", "config.json"),
        ("/datasets/alice/tiny", "--type dataset --all alice/tiny@main", "a/b/c.txt"),
    ],
)
def test_the_command_that_a_page_shows_works(registry, tmp_path, page, command, file):
    assert f"kernels pull {command}" in Answer(registry, page).text
    done = run_shown_commands(registry, tmp_path, page)
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / file).is_file()


def test_use_from_python_and_cmake_fits_the_variants(registry):
    scale = Links(Answer(registry, "/kernels/trusted/my-scale").text).fields
    assert "use-python" not in scale  # it has a header only
    assert scale["use-cmake"].splitlines()[1:] == [
        'neuron_kernels_pull(trusted/my-scale "1.2.0")',
        "target_link_libraries(app PRIVATE my_scale::my_scale)",
    ]
    many = Links(Answer(registry, f"/kernels/{LONG_OWNED}").text).fields
    assert f'get_kernel("{LONG_OWNED}", version=1)' in many["use-python"] and "use-cmake" not in many
    head = json.loads(registry.get(f"/api/kernels/{LONG_OWNED}/revision/v1"))["sha"]
    short = Links(Answer(registry, f"/kernels/{LONG_OWNED}?revision={head[:9]}").text).fields
    assert short["use-pull"] == f"kernels pull {LONG_OWNED}@{head}"


def test_a_hostile_name_of_a_branch_stays_out_of_commands(registry, tmp_path):
    page = "/kernels/alice/hostile?revision=" + urllib.request.quote(HOSTILE_BRANCH, safe="")
    fields = Links(Answer(registry, page).text).fields
    assert re.fullmatch(r"kernels pull alice/hostile@[0-9a-f]{40}", fields["use-pull"])
    run_shown_commands(registry, tmp_path, page)
    assert not (tmp_path / "owned").exists()
    assert "<b>" not in Answer(registry, page).text


def test_variants_say_what_they_run_on(registry):
    text = Answer(registry, f"/kernels/{LONG_OWNED}").text
    assert "PyTorch 2.12, C++11 ABI, CUDA 13.0, x86_64 linux" in text and "Python: einops" in text
    assert "it has no metadata.json" in text and "a name of no known form" in text
    assert re.search(r"<code>torch-cpu</code>.*\n?.*<td class=\"size\">1</td><td class=\"size\">3.0 kB</td>", text)


def test_a_large_card_is_shown_in_part_and_at_once(registry):
    create(registry, "alice/large")
    commit(registry, "alice/large", {"README.md": b"# large\n\n" + b"Words *and* more.\n\n" * 300_000})
    begin = time.monotonic()
    answer = Answer(registry, "/kernels/alice/large")
    assert time.monotonic() - begin < 2
    assert "<em>and</em>" in answer.text and "longer than what is shown" in answer.text
    assert len(answer.body) < 1_000_000


@pytest.mark.parametrize("path", ["", "/tree/main", "/blob/main/README.md", "/resolve/main/README.md"])
@pytest.mark.parametrize("base", ["/kernels/alice/", "/alice/"])
def test_a_private_repository_looks_as_if_there_were_none(registry, base, path):
    hidden, absent = (Answer(registry, base + name + path) for name in ("hidden", "absent"))
    assert hidden.status == absent.status == 404
    assert hidden.body == absent.body and "no such repository here, or it is private" in hidden.text
    assert "hidden" not in Answer(registry, "/?search=alice/hid").text
    member = {"Authorization": f"Bearer {registry.writer}"}
    if base == "/kernels/alice/":
        assert Answer(registry, base + "hidden" + path, member).status == 200
        assert Answer(registry, base + "hidden" + path, {"Authorization": f"Bearer {registry.reader}"}).status == 404


def test_a_gated_repository_shows_that_it_is_there_and_no_content(registry):
    answer = Answer(registry, "/kernels/alice/gated")
    assert answer.status == 200 and "is restricted" in answer.text and "GATED-CONTENT" not in answer.text
    assert "gated.txt" not in answer.text and "GATED-CONTENT" not in Answer(registry, "/?search=gated").text
    for path in ("tree/main", "blob/main/gated.txt", "resolve/main/gated.txt"):
        refused = Answer(registry, f"/kernels/alice/gated/{path}")
        assert refused.status == 401 and "restricted" in refused.text and "<h1>" in refused.text
    member = {"Authorization": f"Bearer {registry.writer}"}
    assert "gated.txt" in Answer(registry, "/kernels/alice/gated", member).text


def test_browsers_get_pages_for_errors_and_programs_get_json(registry):
    missing = "/kernels/trusted/my-scale/resolve/main/none"
    page, data = Answer(registry, missing), Answer(registry, missing, {"Accept": "*/*"})
    assert page.status == data.status == 404
    assert page.headers.get_content_type() == "text/html" and "<h1>Not found</h1>" in page.text
    assert data.headers["X-Error-Code"] == "EntryNotFound" and data.headers.get_content_type() == "application/json"
    assert Answer(registry, "/api/kernels/alice/none").headers.get_content_type() == "application/json"
    assert Answer(registry, "/", {"Authorization": "Bearer wrong"}).status == 401
    for path in ("/kernels/trusted/my-scale?revision=none", "/kernels/trusted/my-scale/tree/main/none", "/nobody"):
        assert Answer(registry, path).status == 404
    escape = Answer(registry, "/kernels/alice/hostile/tree/main/%3Cscript%3E")
    assert "&lt;script&gt;" in escape.text and "<script" not in escape.text


def test_old_addresses_lead_on(registry):
    made = commit(registry, "alice/empty", {"x": b""})
    assert "alice/empty" in Answer(registry, f"/kernels/alice/empty/commit/{made}").text
    assert "<h1" in Answer(registry, "/trusted/my-scale").text  # owner/name alone, and there is no such model


def test_pages_have_strict_headers(registry):
    for path in ("/", "/kernels/trusted/my-scale", "/nobody"):
        headers = Answer(registry, path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';") and "script" not in policy and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "private, no-cache"


def test_the_style_is_kept_by_browsers(registry):
    address = next(link for link in Links(Answer(registry, "/").text).found if "style.css" in link)
    style = Answer(registry, address)
    assert style.headers.get_content_type() == "text/css" and "immutable" in style.headers["Cache-Control"]
    again = Answer(registry, address, {"If-None-Match": style.headers["ETag"]})
    assert again.status == 304 and again.body == b""
    assert Answer(registry, "/_web/none.css").status == 404


def test_ten_thousand_repositories_are_listed_in_a_tenth_of_a_second(tmp_path):
    registry = Registry(KERNELS, tmp_path / "root")
    registry.start()
    create(registry, "alice/model-00000")
    commit(registry, "alice/model-00000", {"README.md": b"# A model\n\nwith a few words about it.\n"})
    commit(registry, "alice/model-00000", {"build/torch-universal/__init__.py": b""}, branch="v1")
    registry.stop()
    folder = registry.root / "repos" / "kernels" / "alice"
    for i in range(1, 10_000):
        (folder / f"model-{i:05d}.git").symlink_to("model-00000.git")  # the server does not mind
    with registry:
        for path, end in (
            ("/", "1–50 of 10000"),
            ("/kernels?page=200", "9951–10000"),
            ("/?search=-099", "1–50 of 100"),
        ):
            times = []
            for _ in range(15):
                begin = time.monotonic()
                answer = Answer(registry, path)
                times.append(time.monotonic() - begin)
                assert end in answer.text and answer.text.count("with a few words") == 50
            assert statistics.median(times) < 0.1, (path, times)
