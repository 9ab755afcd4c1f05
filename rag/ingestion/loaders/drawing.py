"""Read drawings in Office documents: the text in boxes and shapes. Images, charts and diagrams are only counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.loaders.office_package import A

#: In EMU, 360,000 to a centimetre: a smaller picture is a logo or a sign.
LEAST_PICTURE = (1_800_000, 900_000)
DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"


@dataclass
class Drawn:
    """The texts in a drawing, in order, and how many images, charts and diagrams the drawing has."""

    texts: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)


def drawn_in(root: Any) -> Drawn:
    """Read the visible shapes in a drawing. If a drawing is stored in several versions, only the first is read."""
    drawn = Drawn()
    _walk(root, drawn)
    return drawn


def _walk(element: Any, drawn: Drawn) -> None:
    for part in element:
        name = local_name(part)
        if name == "Fallback" or is_hidden(part):
            continue
        if name == "txBody":
            if text := "\n".join(paragraphs_of(part)):
                drawn.texts.append(text)
        elif name == "pic":
            drawn.unread["pictures"] += is_large(part)
        elif name == "graphicData":
            uri = part.get("uri") or ""
            drawn.unread["charts"] += "chart" in uri
            drawn.unread["diagrams"] += uri == DIAGRAM
            drawn.unread["embedded"] += uri.endswith("/ole")
        else:
            _walk(part, drawn)


def paragraphs_of(body: Any) -> Iterator[str]:
    """Yield the paragraphs in a text body, each on a single line. Empty paragraphs are left out."""
    for paragraph in body.iter(A + "p"):
        text = "".join(text_of_run(run) for run in paragraph)
        if text := " ".join(text.split()):
            yield text


def text_of_run(run: Any) -> str:
    """Return the text of a run or field. A line break gives a blank, struck-through text gives ""."""
    name = local_name(run)
    if name == "br":
        return " "
    if name not in ("r", "fld"):
        return ""
    properties = run.find(A + "rPr")
    if properties is not None and (properties.get("strike") or "noStrike") != "noStrike":
        return ""
    return run.findtext(A + "t") or ""


def is_hidden(shape: Any) -> bool:
    for holder in shape:
        if local_name(holder).startswith("nv"):
            return any((part.get("hidden") or "0") in ("1", "true") for part in holder if local_name(part) == "cNvPr")
    return False


def is_large(picture: Any) -> bool:
    """Whether an image is large enough to hold text."""
    size = next((part for part in picture.iter(A + "ext") if part.get("cx")), None)
    if size is None:
        return True
    try:
        return int(size.get("cx")) >= LEAST_PICTURE[0] and int(size.get("cy")) >= LEAST_PICTURE[1]
    except (TypeError, ValueError):
        return True


def local_name(element: Any) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]
