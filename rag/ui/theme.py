"""The product's marks, and the colours for operations in figures."""

from __future__ import annotations

PRODUCT = "HR Assistant"
#: By their addresses: a file would be read and sent again, packed into the message, at every run of a page.
MARK = "/app/static/mark.svg"
WORDMARK = "/app/static/wordmark.svg"

#: Colours in figures, as indexes into `chartCategoricalColors`: an operation has the same colour everywhere.
OPERATION_COLOR_INDEX = {"chat": 0, "embedding": 1, "reranking": 2, "translation": 3, "tagging": 4, "ocr": 5}


#: `config=` for every chart: no toolbar, which is clutter beside the product's controls.
PLOTLY_CONFIG = {"displayModeBar": False, "displaylogo": False}
