"""How the pages become a site: `make docs`. Nothing in it is fetched from another host.

The sources are the pages as they stand, README.md, docs/*.md and results/*.md, whose links also lead somewhere
on a code host. A link to a file that is no page leads to a page that shows this file.
"""

import posixpath
import re
import shutil
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parent.parent

project = "contact_id_controller"
html_title = project
copyright = "contact_id_controller maintainers, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]

# The source folder is the repository's, whose other files are no pages.
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "results/*.md"]

# What the reader is looking for, in the order in which it is needed. New pages come last.
GROUPS = {
    "Start in five minutes": ["getting_started", "contact_models", "comparison"],
    "Tutorials": [
        "your_robot",
        "to_the_robot",
        "tutorial_arm",
        "tutorial_humanoid",
        "examples",
        "adding_a_contact_model",
    ],
    "What it does": ["walking", "planning", "pushes", "estimation", "labelling"],
    "Watch and replay": ["live_view", "replay"],
    "On a robot": ["ros2_control", "real_time", "safety", "security"],
    "Reference": ["parameters", "reference", "architecture"],
    "Theory": ["theory", "exact_cones"],
    "Measured": [
        "/results/README",
        *sorted(f"/results/{page.stem}" for page in (ROOT / "results").glob("[a-z]*.md")),
    ],
}
_LISTED = {page for pages in GROUPS.values() for page in pages}
_REST = sorted(
    page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in _LISTED
)  # of a page that is in no group

# Pages
myst_heading_anchors = 6
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "source": {"url": "{{path}}", "title": "{{path}}"},
}
highlight_language = "text"

# Reference
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and units stand in the text
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
viewcode_line_numbers = False

# Looks
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

LINK = re.compile(r"(?<!!)(\[[^\]]*\]\()([^)\s#:]+)(\))")
NAMED_AFTER_ITSELF = re.compile(r"\[((?:\w+/)?\w+\.md)\]\(((?:\.\./)?(?:\w+/)?\w+\.md)(#[\w-]+)?\)")
"""Such as [docs/theory.md](docs/theory.md); the site has the page's title in its place."""
SHARED = re.compile(r" {4}\w+(, \w+)+:")
"""Several names with one text in a section of a docstring."""
COMMAND = re.compile(r"^(contact_id|make|ros2|python3?|pip|cd|source|export|sudo|git) ")
PYTHON = re.compile(r"^(from|import|def|robot =) ?")


def with_groups(app, docname, source):
    """The first page gets the order of all pages; links to files lead to pages that show them."""
    folder = posixpath.dirname(docname)

    def shown(match):
        before, target, after = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if target.endswith(".md") or not (ROOT / path).exists():
            return match[0]
        shown_files(app).add(path)
        return f"{before}source:{'../' if folder else ''}files/{path}.html{after}"

    source[0] = NAMED_AFTER_ITSELF.sub(r"[](\2\3)", LINK.sub(shown, source[0]))
    if docname == root_doc:
        groups = {**GROUPS, **({"More": _REST} if _REST else {})}
        trees = {
            name: [posixpath.join("docs", page) for page in pages] for name, pages in groups.items()
        }
        trees["Project"] = ["CONTRIBUTING", "CHANGELOG"]
        for name, pages in trees.items():
            listed = "\n".join(pages)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {name}\n\n{listed}\n```\n"


def shown_files(app):
    """Files that pages link to, relative to the repository, kept between builds."""
    if not hasattr(app.env, "contact_id_files"):
        app.env.contact_id_files = set()
    return app.env.contact_id_files


def language_of(text):
    """Of a block that does not say what it is: commands, Python, or text such as a formula."""
    if COMMAND.match(text):
        return "bash"
    if PYTHON.match(text):
        return "python"
    return "yaml" if re.match(r"[\w/*]+:\n +\w+", text) else "text"


def with_languages(app, doctree):
    """Colours for blocks that do not say their language."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language", "default") in ("default", "text", "none"):
            block["language"] = language_of(block.astext())


def plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: their bars, stars and formulas stand for themselves."""
    section = block = False
    out = []
    for line in lines:
        indented = line.startswith("    ")
        if line.strip() and not indented:
            section = bool(re.fullmatch(r"(Args|Attributes|Raises|Returns|Yields|Source):.*", line))
            block = False
        elif indented and not section and not block and not (out and out[-1].strip()):
            out += ["::", ""]
            block = True
        if section and SHARED.match(line):  # Napoleon would take the first ones for a type
            names, text = line.split(":", 1)
            line = f"    {names.replace(' ', '')}:{text}"
        out.append(line if block else escaped(line))
    lines[:] = out


def escaped(line):
    """A line without marks of reStructuredText but code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    parts[::2] = [
        re.sub(r"(?<=\w)_(?!\w)", r"\\_", re.sub(r"([*|])", r"\\\1", p)) for p in parts[::2]
    ]
    return "".join(parts)


def files_to_show(app):
    """A page for each file that is linked, and for each folder a page that lists its files."""
    wanted = sorted(shown_files(app))
    while wanted:
        path = wanted.pop()
        place = ROOT / path
        up = "../" * (path.count("/") + 1)
        if place.is_dir():
            inside = sorted(
                p for p in place.rglob("*") if p.is_file() and "__pycache__" not in str(p)
            )
            names = [p.relative_to(ROOT).as_posix() for p in inside]
            wanted += names
            items = "".join(f'<li><a href="{up}files/{n}.html">{n}</a></li>' for n in names)
            body = f"<ul>{items}</ul>"
        else:
            kind = {".py": "python", ".yaml": "yaml", ".xml": "xml"}.get(place.suffix, "text")
            text = place.read_text(encoding="utf-8")
            body = app.builder.highlighter.highlight_block(text, kind)
        yield f"files/{path}", {"title": path, "body": f"<h1>{path}</h1>\n{body}"}, "page.html"


def pages_of_files(app):
    """Each once, though folders have files in common with links."""
    return {name: (name, values, kind) for name, values, kind in files_to_show(app)}.values()


def without_ways_back(app, pagename, templatename, context, doctree):
    """Sources of names that pages call otherwise than their module does: their links miss."""
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def formula(translator, node):
    """A formula as MathML, which browsers set by themselves."""
    kind = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(f'<div class="formula">{convert(node.astext(), display=kind)}</div>')
    raise nodes.SkipNode


def front_page(app, exception):
    """The site opens where a folder is opened."""
    if exception is None and app.builder.format == "html":
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app):
    """What Sphinx asks of an extension."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("source-read", with_groups)
    app.connect("doctree-read", with_languages)
    app.connect("autodoc-process-docstring", plain, priority=400)
    app.connect("html-collect-pages", pages_of_files)
    app.connect("html-page-context", without_ways_back)
    app.connect("build-finished", front_page)
    return {"parallel_read_safe": False}
