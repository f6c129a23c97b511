"""What MkDocs adds to make a site of the documents: links out of docs/, schemas, the help of commands, a check.

`make docs` calls MkDocs with this file as its hook. README.md is the first page. Whatever else of the repository a page
links to becomes a page too (`repository/`), code as a listing; documents that the navigation does not name stand at
its end. After the build every link and every asset is followed: all must be in the site. Programs find the pages in
`llms.txt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from gcnsim.core.schemas import DOCUMENTS, schema_of, schema_text
from studies.command_help import with_help

ROOT: Final = Path(__file__).resolve().parents[1]
_FENCE: Final = re.compile(r"^(```+)(\w+)[^\n]*$", re.MULTILINE)
_LINK: Final = re.compile(r"(\]\(\s*<?)([^)\s>]+)(>?(?:\s+\"[^\"]*\")?\s*\))")
_LINKED: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BLOCK: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_ITEM: Final = re.compile(r"^(?![ \t]*(?:[-*+]|\d+\.) )(?!\s*$)(.*)\n(?=(?:[-*+]|\d+\.) )", re.MULTILINE)
_LANGUAGES: Final = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml", ".txt": "text", "": "text"}
_EXAMPLE: Final = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
COMMANDS: Final = "docs/cli.md"
"""The page that gets the help of every command."""


def anchor(heading: str, separator: str = "-") -> str:
    """The anchor of a heading as hosts of repositories make it: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def page_of(name: str) -> str:
    """Where a file of the repository stands in the site."""
    if name == "README.md":
        return "index.md"
    path = PurePosixPath(name)
    if path.parts[0] == "docs":
        return str(PurePosixPath(*path.parts[1:]))
    return str(PurePosixPath("repository", path if path.suffix == ".md" else f"{path}.md"))


def file_of(page: str) -> str:
    """The file of the repository that a page of the site is made of."""
    if page == "index.md":
        return "README.md"
    path = PurePosixPath(page)
    if path.parts[0] != "repository":
        return str(PurePosixPath("docs", path))
    name = PurePosixPath(*path.parts[1:])
    bare = name.with_suffix("")
    return str(name if (ROOT / name).is_file() else bare)


def linked(link: str, name: str) -> str | None:
    """The file of the repository that a link of the file `name` leads to; None for an address, a bare anchor, nothing.

    Of a folder it is its README.md.
    """
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    found = normpath(str(PurePosixPath(name).parent / unquote(parts.path)))
    if (ROOT / found).is_dir():
        found = f"{found}/README.md"
    return found if not found.startswith("..") and (ROOT / found).is_file() else None


def rewritten(text: str, name: str) -> str:
    """A document for the site: fences without words that tests read, lists set apart, links to pages of the site."""
    pieces = _CODE.split(text)
    for at, piece in enumerate(pieces):
        if at % 2:
            pieces[at] = _FENCE.sub(r"\1\2", piece, count=1) if piece.startswith("```") else piece
            continue
        pieces[at] = _LINK.sub(lambda found: f"{found[1]}{_target(found[2], name)}{found[3]}", _apart(piece))
    return "".join(pieces)


def fenced(text: str) -> str:
    """A docstring with its examples in fences: Markdown would read `>>>` as quotations."""
    return text if "```pycon" in text else _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _apart(text: str) -> str:
    return _ITEM.sub(r"\1\n\n", text)


def _target(link: str, name: str) -> str:
    found = linked(link, name)
    if found is None:
        return link
    page = page_of(found) if found.endswith(".md") or not found.startswith("docs/") else found.removeprefix("docs/")
    fragment = urlsplit(link).fragment
    return relpath(page, str(PurePosixPath(page_of(name)).parent)) + (f"#{fragment}" if fragment else "")


def outside(names: list[str]) -> list[str]:
    """The files outside docs/ that documents link to, and those that these link to, in order."""
    found: list[str] = []
    waiting = ["README.md", *names]
    while waiting:
        name = waiting.pop(0)
        if not name.endswith(".md"):
            continue
        prose = _CODE.sub("", (ROOT / name).read_text(encoding="utf-8"))
        for match in _LINK.finditer(prose):
            other = linked(match[2], name)
            if other and not other.startswith("docs/") and other not in found and other != "README.md":
                found.append(other)
                waiting.append(other)
    return found


def listing(name: str) -> str:
    """A file that is no document, as one: its name and its text."""
    text = (ROOT / name).read_text(encoding="utf-8").rstrip()
    return (
        f"# {PurePosixPath(name).name}\n\n`{name}`\n\n````{_LANGUAGES.get(Path(name).suffix, 'text')}\n{text}\n````\n"
    )


def schemas() -> str:
    """A section for each JSON schema that comes with the package: what it is of, its first fields, the file."""
    pieces = []
    for name in sorted(DOCUMENTS):
        schema = schema_of(name)
        required, known = set(schema.get("required", ())), schema.get("$defs", {})
        rows = [
            f"| `{key}` | {'yes' if key in required else 'no'} | {_kind(field)} | {_says(field, known)} |"
            for key, field in schema.get("properties", {}).items()
        ]
        table = ["| key | required | type | what it is |", "|---|---|---|---|", *rows]
        whole = f'??? note "{name}"\n\n    ```json\n{_indented(schema_text(name))}\n    ```'
        pieces.append("\n\n".join([f"### {schema['title']}", _says(schema), "\n".join(table), whole]))
    return "\n\n".join(pieces) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


def _kind(field: Any) -> str:
    if "$ref" in field:
        return f"`{str(field['$ref']).rsplit('/', 1)[-1]}`"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    content = field.get("type", "")
    return ", ".join(content) if isinstance(content, list) else str(content)


def _says(field: Any, known: Mapping[str, Any] = MappingProxyType({})) -> str:
    referred = known.get(str(field.get("$ref", "")).rpartition("/")[2], {})
    return str((referred | field).get("description", "")).replace("|", "\\|").replace("\n", " ")


def index(nav: Any, title: str = "Pages") -> str:
    """The pages of a navigation as `llms.txt` lists them (https://llmstxt.org): title, address, first sentence."""
    lines, below = [f"\n## {title}\n"], []
    for item in nav:
        name, page = next(iter(item.items())) if isinstance(item, dict) else ("", item)
        if not isinstance(page, str):
            below.append(index(page, name))
            continue
        head, *parts = _BLOCK.sub("", (ROOT / file_of(page)).read_text(encoding="utf-8")).split("\n\n")
        prose = next((part for part in parts if part.strip() and part[0] not in "|#<>!"), "")
        first = re.split(r"(?<=\.)\s", _LINKED.sub(r"\1", " ".join(prose.split())), maxsplit=1)[0]
        lines.append(f"- [{name or head.lstrip('# ')}]({_address(page)}): {first}")
    return "\n".join([*lines, *below])


def schema_index() -> str:
    """The schemas of answers and files as `llms.txt` lists them."""
    found = [schema_of(name) for name in sorted(DOCUMENTS)]
    lines = [f"- [{one['title']}](files.html#{anchor(one['title'])}): {_says(one)}\n" for one in found]
    return "".join(["\n## JSON schemas (every `--json` names its own)\n\n", *lines])


def _address(page: str) -> str:
    path = PurePosixPath(page)
    return str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))


API: Final = """
## JSON API (of a running `gcnsim dashboard`)

- [What-if and recommend](dashboard.html#for-programs): `POST /api/what-if`, `POST /api/recommend`, described by
  `GET /api/openapi.json` (OpenAPI 3.1).
"""


class _Links(HTMLParser):
    """Links, assets and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value for name, value in attrs if value is not None}
        if "id" in held:
            self.anchors.add(held["id"])
        if tag == "a" and "href" in held:
            self.links.append(held["href"])
        if "src" in held:
            self.assets.append(held["src"])
        if tag == "link" and "href" in held and held.get("rel") != "canonical":
            self.assets.append(held["href"])


def astray(site: Path) -> list[str]:
    """Links and assets of a built site that lead nowhere, and assets that lie elsewhere; a line for each."""
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in [*page.links, *page.assets]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.assets and parts.scheme != "data":
                    found.append(f"{path.relative_to(site)}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{path.relative_to(site)}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path.relative_to(site)}: {link} has no such heading")
    return found


def on_config(config: Any) -> Any:
    """MkDocs asks: anchors as the documents' own links have them, and documents that the navigation leaves out."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    named = json.dumps(config.nav)
    rest = [path.name for path in sorted(Path(config.docs_dir).glob("*.md")) if f'"{path.name}"' not in named]
    names = [f"docs/{path.name}" for path in sorted(Path(config.docs_dir).glob("*.md"))]
    papers = [page_of(name) for name in outside(names) if name.endswith(".md")]
    config.nav = [*config.nav, *rest, {"The repository": papers}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """MkDocs asks: README.md as the first page, and pages of what is linked to outside docs/."""
    from mkdocs.structure.files import File, InclusionLevel

    names = [f"docs/{path.name}" for path in sorted(Path(config.docs_dir).glob("*.md"))]
    for name in ["README.md", *outside(names)]:
        document = name.endswith(".md")
        text = (ROOT / name).read_text(encoding="utf-8") if document else listing(name)
        level = InclusionLevel.INCLUDED if document else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, page_of(name), content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """MkDocs asks: a document as the site needs it."""
    name = file_of(page.file.src_uri)
    if not name.endswith(".md"):
        page.meta["search"] = {"exclude": True}
        return markdown
    text = rewritten(markdown, name).replace("<!-- schemas -->", schemas())
    return with_help(text) if name == COMMANDS else text


def on_post_build(config: Any) -> None:
    """MkDocs asks: write the index for programs, and follow every link of what was built. Raises Abort."""
    from mkdocs.exceptions import Abort

    text = f"# {config.site_name}\n\n> {config.site_description}.\n{index(config.nav)}\n{schema_index()}{API}"
    Path(config.site_dir, "llms.txt").write_text(text, encoding="utf-8")
    site = Path(config.site_dir)
    found = [
        *astray(site),
        *(link for link in re.findall(r"\]\((.+?)\)", text) if not (site / link.partition("#")[0]).is_file()),
    ]
    if found:
        raise Abort("\n".join(["links that lead nowhere, or out of the site:", *found]))
