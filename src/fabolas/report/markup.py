"""HTML as values: ``tag`` escapes every text, so that only this module decides what a browser interprets."""

import html

from fabolas.display import safe_html, safe_lines

_VOID = frozenset({"br", "input", "link", "meta"})  # elements without content


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str | Markup, **attributes: str | bool | None) -> Markup:
    """Return an element. Text is escaped, ``Markup`` is kept.

    Args:
        name: Name of the element.
        *children: Its content.
        **attributes: ``data_name`` becomes ``data-name`` and ``class_`` becomes ``class``. An attribute that is True
            has no value; one that is None or False is left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | Markup) -> Markup:
    """Return the children one after another. Text is escaped, ``Markup`` is kept."""
    return Markup("".join(child if isinstance(child, Markup) else safe_html(child) for child in children))


def lines(text: str) -> Markup:
    """Return text of several lines, for an element ``pre``."""
    return Markup(html.escape(safe_lines(text), quote=True))


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{safe_html(value)}"'
