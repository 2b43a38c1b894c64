"""The pages become a site by one command, offline, without a warning; it fetches nothing."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from paths import ROOT

import contact_id_controller
from contact_id_controller import estimation, models
from contact_id_controller.models import ContactModel

NEEDED = ("sphinx", "myst_parser", "furo", "latex2mathml")
FOLDERS = ("docs", "results")
PAGES = sorted(page for part in FOLDERS for page in (ROOT / part).glob("*.md"))
REFERENCE = ROOT / "docs" / "reference.md"


class _Page(HTMLParser):
    """What a page fetches when it is opened, and where its links lead."""

    def __init__(self, file):
        super().__init__()
        self.fetched, self.links, self.anchors = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.add(values.get("id"))
        source = values.get("src") or (values.get("href") if tag == "link" else None)
        if source and values.get("rel") not in ("canonical", "author"):
            self.fetched.append(source)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the extra docs is not installed: no {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("site")
    (rule,) = re.findall(
        r"^docs:.*\n\t@\$\(BIN\)/python (.*)$", (ROOT / "Makefile").read_text(), re.M
    )
    words = rule.replace("build/", f"{folder}/").split()
    result = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site):
    return {file: _Page(file) for file in sorted(site.rglob("*.html"))}


def test_formulas_are_set_by_the_browser_itself(site):
    text = (site / "docs" / "theory.html").read_text(encoding="utf-8")
    written = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8").count("```math")
    formulas = re.findall(r'<div class="formula"><math .*?</math></div>', text, re.DOTALL)
    assert len(formulas) == written > 20
    for formula in formulas:
        assert "\\" not in formula and "&#x00026;" not in formula, "a command that is not known"


def test_every_page_is_there_and_the_first_one_opens(site):
    written = {file.relative_to(site) for part in FOLDERS for file in (site / part).glob("*.html")}
    assert written == {page.relative_to(ROOT).with_suffix(".html") for page in PAGES}
    first = (site / "index.html").read_text(encoding="utf-8")
    for page in PAGES:
        assert f'href="{page.parent.name}/{page.stem}.html"' in first, page.name


def test_nothing_is_fetched_from_another_host(site, pages):
    for file, page in pages.items():
        outside = [source for source in page.fetched if urlsplit(source).netloc]
        assert outside == [], file
        assert page.fetched
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import[^;]*//|url\([\"']?(?:https?:)?//", text), style


def test_links_between_pages_and_files_lead_somewhere(site, pages):
    broken = []
    for file, page in pages.items():
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or "#" == link:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else {anchor}
            if not target.is_file() or (anchor and anchor not in known):
                broken.append((file.name, link))
    assert broken == []


def test_a_link_to_a_file_of_the_sources_shows_it(site):
    page = (site / "docs" / "getting_started.html").read_text(encoding="utf-8")
    assert "files/config/quadruped.yaml.html" in page
    shown = (site / "files" / "config" / "quadruped.yaml.html").read_text(encoding="utf-8")
    assert "contact_frames" in shown


def test_the_reference_has_every_public_name_with_its_text(site):
    text = REFERENCE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\.\. auto\w+:: (?:[\w.]+\.)?(\w+)$", text, flags=re.M))
    for module in (contact_id_controller, estimation):
        assert set(module.__all__) <= listed, module.__name__
    functions = set(models.__all__) - {"ROWS"}
    assert functions <= listed
    page = (site / "docs" / "reference.html").read_text(encoding="utf-8")
    assert 'id="contact_id_controller.solve"' in page
    assert ContactModel.__doc__.split("\n")[0].split(";")[0].split(".")[0] in page


def test_a_page_that_links_nowhere_is_an_error(tmp_path):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("the extra docs is not installed")
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    for name in ("conf.py", "site.css"):
        (source / "docs" / name).write_bytes((ROOT / "docs" / name).read_bytes())
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (source / name).write_text("# Page\n", encoding="utf-8")
    _add_listed_pages(source)
    with (source / "docs" / "theory.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](nowhere.md) and [no heading](walking.md#no-such)\n")
    result = _built(source, tmp_path / "bad")
    assert result.returncode != 0
    assert "nowhere.md" in result.stderr and "no-such" in result.stderr
    assert result.stderr.count("WARNING:") == 2, result.stderr


def _add_listed_pages(source: Path):
    (source / "results").mkdir()
    for page in PAGES:
        (source / page.parent.name / page.name).write_text(f"# {page.stem}\n", encoding="utf-8")


def _built(source, output):
    command = ["-b", "html", "-W", "--keep-going", "-q", "-c", "docs", ".", str(output)]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *command], cwd=source, capture_output=True, text=True
    )
