"""The product's logo, and the colours for operations in charts."""

from __future__ import annotations

PRODUCT = "HR Assistant"
#: Addresses instead of files: each page run would read a file and send it again, packed into the message.
MARK = "/app/static/mark.svg"
WORDMARK = "/app/static/wordmark.svg"

#: Colours in figures, as indexes into `chartCategoricalColors`: an operation has the same colour everywhere.
OPERATION_COLOR_INDEX = {"chat": 0, "embedding": 1, "reranking": 2, "translation": 3, "tagging": 4, "ocr": 5}


#: `config=` for every chart: no toolbar, which is clutter beside the product's controls.
PLOTLY_CONFIG = {"displayModeBar": False, "displaylogo": False}
