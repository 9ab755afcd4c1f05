"""What is deployed cannot be started here; it is checked by linters, and against what it names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from rag.__main__ import command_line
from rag.monitoring import metrics
from rag.settings import Settings, environment_name
from tests.doc_blocks import PROJECT, blocks

DEPLOY = PROJECT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
#: Of the images, not of the product.
OF_POSTGRES = {"POSTGRES_PASSWORD", "OWNER_PASSWORD", "APP_PASSWORD"}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


@pytest.mark.skipif(not (PROJECT / ".venv/bin/hadolint").exists(), reason="hadolint is for Linux on x86-64")
def test_the_image_passes_hadolint() -> None:
    linter = PROJECT / ".venv/bin/hadolint"
    done = subprocess.run([linter, PROJECT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_image_holds_what_the_product_reads_and_nothing_secret() -> None:
    text = (PROJECT / "Dockerfile").read_text("utf-8")
    ignored = (PROJECT / ".dockerignore").read_text("utf-8").split()
    copied = re.findall(r"^COPY (?!--from)(.+) \\S+$", text, re.M)
    for name in " ".join(copied).split():
        assert (PROJECT / name).exists(), name
        assert f"!{name}" in ignored, f"{name} is kept out of the build"
    assert ignored[0] == "*"
    assert ".streamlit/secrets.toml" in ignored
    assert re.search(r"^USER 10001$", text, re.M)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_units_pass_systemds_own_check(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    text = unit.read_text("utf-8")
    copy.write_text(text.replace("/opt/hr-assistant/.venv/bin/python", shutil.which("true") or "/bin/true"), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []
    command = re.search(r"^ExecStart=\S+ -m rag (\S+)$", text, re.M)
    assert command is not None
    command_line().parse_args([command[1]])


def test_services_are_confined_and_start_in_order() -> None:
    services = compose()["services"]
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("image", "").endswith(":latest"), name
    assert services["application"]["depends_on"]["database"]["condition"] == "service_healthy"
    command_line().parse_args(services["worker"]["command"])
    # People reach it through a proxy with https, never by the port itself.
    assert all(port.startswith("127.0.0.1:") for port in services["application"]["ports"])


def test_settings_that_are_named_exist() -> None:
    known = {environment_name(name) for name in Settings.__dataclass_fields__} | OF_POSTGRES
    named = set(compose()["services"]["application"]["environment"])
    for path in (DEPLOY / "compose.env.example", *UNITS, PROJECT / "Dockerfile"):
        named |= set(
            re.findall(
                r"(?:^|=|\s)((?:RAG|OPENAI|COHERE|DATABASE|POSTGRES|OWNER|APP)_[A-Z_]+)=", path.read_text(), re.M
            )
        )
    assert len(named) > 8
    assert named <= known


def test_the_roles_are_those_of_the_docs() -> None:
    script = (DEPLOY / "postgres/roles.sh").read_text("utf-8")
    told = "\n".join(block.text for block in blocks("docs/operations.md", "sql")[:2])
    for statement in filter(None, map(str.strip, told.split(";"))):
        plain = statement.replace("'choose-one'", ":'owner'").replace("'choose-another'", ":'app'")
        assert f"{plain};" in script, plain


def test_dashboards_and_alerts_read_metrics_that_exist() -> None:
    assert metrics.requests is not None
    known = {sample for family in REGISTRY.collect() for sample in names_of(family.name, family.type)}
    dashboard = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))
    queries += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    read = {name for query in queries for name in re.findall(r"\b(?:hr|process)_[a-z_]+", query)}
    assert len(read) > 10
    assert read <= known


def names_of(name: str, kind: str) -> list[str]:
    return [
        name,
        *(f"{name}_{end}" for end in ({"histogram": ("bucket", "count", "sum"), "counter": ("total",)}.get(kind, ()))),
    ]
