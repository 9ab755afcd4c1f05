"""The launcher: one server for the pages, the sign-in and the API.

`python -m rag serve` starts it with everything set up; `streamlit run app.py` and `uvicorn app:app` work too.
The pages start in `pages/main.py` and not here: beside a folder `pages/`, Streamlit would run any page by its address
before this file had a say.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES, lifespan, on_script_error

#: Settings read secrets.toml themselves. Without any secret of its own, Streamlit looks for that file again at each run
#: of a page, behind one lock: with a hundred readers, most threads waited there.
SECRETS = {"read_by": "rag.settings"}

app = st.App(
    Path(__file__).resolve().parent / "pages" / "main.py",
    secrets=SECRETS,
    routes=ROUTES,
    middleware=MIDDLEWARE,
    lifespan=lifespan,
    on_script_error=on_script_error,
    exception_handlers=ERROR_HANDLERS,
)
