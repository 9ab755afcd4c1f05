# The whole product in one image: the application, or a worker beside it (`command: [worker]`).
# Without DATABASE_URL it runs its own Postgres in /data. deploy/compose.yaml builds and starts it.
# Images are named by digest: nobody gets another one later. `docker buildx imagetools inspect IMAGE:TAG` shows today's.
FROM python:3.12.15-slim-bookworm@sha256:54c85f3c47607a77f32adec749d3c81d1348bf25833671f512b26a9b6d778cb3 AS packages
WORKDIR /app
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
COPY requirements.txt requirements-integrations.txt ./
COPY deploy/installer.txt deploy/
COPY rag/__init__.py rag/launch.py rag/
# Installed as by `make run`, each file by its hash. uv is of no use afterwards.
RUN python -m rag.launch install && .venv/bin/python -m pip uninstall --yes uv

FROM python:3.12.15-slim-bookworm@sha256:54c85f3c47607a77f32adec749d3c81d1348bf25833671f512b26a9b6d778cb3
# An account without rights of its own; its number is the owner of the volume.
RUN useradd --uid 10001 --create-home --home-dir /data --shell /usr/sbin/nologin hr
# Letters of Korean, Chinese and Japanese in reports and exports as PDF. Security updates come with the base image's list.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends fonts-noto-cjk && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=packages /app/.venv .venv
COPY app.py pyproject.toml LICENSE CHANGELOG.md ./
COPY .streamlit .streamlit
COPY pages pages
COPY supabase supabase
COPY rag rag
RUN .venv/bin/python -m compileall -q rag pages app.py
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    RAG_ADDRESS=0.0.0.0 RAG_DATA_DIR=/data/hr-assistant RAG_LOG_FORMAT=json
USER 10001
VOLUME /data
EXPOSE 8501
# Healthy means that people can ask questions: the database answers.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/api/health', timeout=4)"]
ENTRYPOINT ["python", "-m", "rag"]
CMD ["serve"]
