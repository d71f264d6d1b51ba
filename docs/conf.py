"""Sphinx configuration. The pages of the games are written by ``gen_games.py`` before each build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
for folder in (DOCS, DOCS.parent, DOCS.parent / "tests"):  # tests/rotation.py says which games changed lately
    sys.path.insert(0, str(folder))

import figures  # noqa: E402
import gallery  # noqa: E402
import gen_games  # noqa: E402
import kernels  # noqa: E402
import messages  # noqa: E402
import notebook_pages  # noqa: E402
import one_step  # noqa: E402
import simple_files  # noqa: E402
import training_options  # noqa: E402

import gpuzoo  # noqa: E402
from gpuzoo.core.dialect import FORBIDDEN, REGIONS, UNIFORM  # noqa: E402

project = "gpuzoo"
author = "the gpuzoo developers"
copyright = author
release = version = gpuzoo.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline", "substitution"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "gpuzoo"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["custom.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_ivar = True
napoleon_use_rtype = False


def _forbidden() -> str:
    """The refused words as a table: words that share a reason share a row."""
    rows: dict[str, list[str]] = {}
    for word, reason in FORBIDDEN.items():
        rows.setdefault(reason, []).append(word)
    lines = ["| word | what to do, or why not |", "|---|---|"]
    lines += [f"| {' '.join(f'`{w}`' for w in words)} | {reason} |" for reason, words in rows.items()]
    return "\n".join(lines)


myst_substitutions = {
    "forbidden": _forbidden(),
    "regions": ", ".join(f"`{r}`" for r in sorted(REGIONS)),
    "uniform": ", ".join(f"`e.{name}`" for name in sorted(UNIFORM)),
    "training_options": training_options.options_table(),
    "simple_files": simple_files.files_table(),
    "messages": messages.lists(),
    "number_of_games": str(len(gpuzoo.ids())),
    "kinds_of_games": gallery.kinds(),
    **one_step.substitutions(),
    **kernels.substitutions(),
    **figures.substitutions(),
}


def _write_pages(app: Any) -> None:
    gen_games.generate(Path(app.srcdir) / "games", Path(app.srcdir) / "_static" / "games")
    notebook_pages.generate()


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", _write_pages)
