"""A page of Streamlit that draws hostile text in every place the product draws text in. Run by test_hostile_text."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

import pandas as pd  # noqa: E402
import streamlit as st  # noqa: E402

from rag.ui.text import answer_markdown, code, lines, marked, plain  # noqa: E402
from rag.ui.widgets import drawn, name_labels  # noqa: E402
from tests.markdown_links import FAITHFUL, PIECES  # noqa: E402

ANSWERS = (
    r"Leave is 25 days. \`[click here](https://evil.test/phish)\` [1]",
    "wow![1] ![x](https://evil.test/x.png) [1](https://evil.test)",
    '```mermaid\ngraph TD; A-->B; click A "https://evil.test"\n```',
    "| a |\n|---|\n| `a\\\\|https://evil.test/` |",
    "``a`b`c``www.evil.test`",
    ":material/home: :material_home: :streamlit: $x^2$ :red[x] [^1]\n\n[^1]: https://evil.test",
    *PIECES,
)


def mixtures(number: int) -> list[str]:
    random = Random(11)
    return ["".join(random.choices(PIECES, k=random.randint(2, 12))) for _ in range(number)]


texts = [*PIECES, *mixtures(60)]
with st.container(key="faithful"):
    st.markdown(plain(FAITHFUL))
for answer in [*ANSWERS, *mixtures(60)]:
    st.markdown(answer_markdown(answer, [1, 2], "s1"))
for text in texts:
    st.markdown(f"**{plain(text)}**  \n:gray[{plain(text)}] :blue-badge[{plain(text)}]")
    st.markdown(lines(text))
    st.caption(code(text))
    st.caption(marked(text, ["leave", "evil"]))
for number, text in enumerate(PIECES):
    st.button(plain(text), key=f"button_{number}", help=plain(text))
    st.expander(plain(text))
for text in PIECES[::3]:
    st.error(plain(text))
    st.subheader(plain(text), anchor=False)
    st.metric(plain(text), plain(text))
names = name_labels(dict(enumerate(PIECES)))
st.pills("Pills", list(names), format_func=drawn(names))
st.radio("Radio", list(names), format_func=drawn(names))
st.selectbox("Box", list(names), format_func=names.of)
st.multiselect("Boxes", list(names), format_func=names.of)
st.table({plain(text): plain(text) for text in PIECES[:40]})
st.dataframe(pd.DataFrame({"Text": PIECES}))
st.progress(0.5, text=plain("https://evil.test"))
st.toast(plain("https://evil.test [x](https://evil.test)"))
st.json({"https://evil.test": "https://evil.test/<img src=x>"})
st.text("https://evil.test <b>x</b>")
with st.container(key="done"):
    st.markdown("All drawn")
