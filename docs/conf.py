"""The site: the pages of this folder, the gallery of examples/, and a page for every public name (`make docs`)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import separatrix  # noqa: E402  # after the path

project, author = "separatrix", "The separatrix developers"
project_copyright = "The separatrix developers, BSD-3-Clause"
release = importlib.import_module("importlib.metadata").version("separatrix")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/**/*.ipynb"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

# A class has a page with its methods; scikit-learn's own mixins are documented there.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "separatrix"
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_.*\.py",
    "ignore_pattern": r"cluster_demo\.py|__init__\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "matplotlib_animations": True,
}

API = ROOT / "docs" / "reference"
MODULES = {
    "Estimators and what most work needs": "separatrix",
    "Comparing models on a table": "separatrix.comparison",
    "Decisions": "separatrix.decide",
    "Geometry": "separatrix.geometry",
    "Inference": "separatrix.inference",
    "Plots": "separatrix.plots",
    "Model files, SQL, ONNX, JSON": "separatrix.export",
    "Rows": "separatrix.data",
    "Tables": "separatrix.tables",
    "scikit-learn's classes become ours": "separatrix.drop_in",
}


def write_reference() -> None:
    """One page per public module, each with a table of its names; autosummary writes the pages of these."""
    API.mkdir(exist_ok=True)
    lines = ["# API reference", "", "Every public name, by module.", "", "```{toctree}", ":maxdepth: 1", ""]
    seen: dict[int, str] = {}  # where a name has its page
    for title, module in MODULES.items():
        found = importlib.import_module(module)
        names = [name for name in found.__all__ if id(getattr(found, name)) not in seen]
        elsewhere = [
            f":py:obj:`{name} <{seen[id(getattr(found, name))]}>`" for name in found.__all__ if name not in names
        ]
        seen.update((id(getattr(found, name)), f"{module}.{name}") for name in names)
        lines.append(f"{title} <{module}>")
        page = [f"# {title}", "", f"`{module}`", "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
        if names:
            page += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
            page += [f"   {name}" for name in sorted(names, key=str.lower)] + [""]
        if elsewhere:
            page += [f"Also in this module: {', '.join(sorted(elsewhere, key=str.lower))}."]
        page += ["```", ""]
        (API / f"{module}.md").write_text("\n".join(page), encoding="utf-8")
    (API / "index.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")


assert separatrix.__all__, "the package has its names"
write_reference()
