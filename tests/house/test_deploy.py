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
from rag.api import health
from rag.integrations import registry
from rag.monitoring import metrics
from rag.server import API_ROUTES
from rag.settings import environment_names
from tests.doc_blocks import PROJECT, blocks
from tests.helm_template import rendered

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
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M)
    names = " ".join(copied).split()
    assert names
    for name in names:
        assert (PROJECT / name).exists(), name
        folders = [name, *map(str, Path(name).parents)]
        assert any(f"!{folder}" in ignored for folder in folders), f"{name} is kept out of the build"
    assert ignored[0] == "*"
    assert ".streamlit/secrets.toml" in ignored
    assert re.search(r"^USER 10001$", text, re.M)


def test_images_of_others_are_named_by_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", (PROJECT / "Dockerfile").read_text("utf-8"), re.M)
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text("utf-8"))
    database = compose()["services"]["database"]["image"]
    assert len(bases) == 2
    for image in (*bases, database, values["backup"]["image"]):
        assert re.fullmatch(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image
    assert len(set(bases)) == 1
    assert database == values["backup"]["image"], "a dump is made by the Postgres that it is of"


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
    known = environment_names() | OF_POSTGRES
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


def test_the_database_of_the_containers_has_the_settings_of_the_docs() -> None:
    told = [block.text for block in blocks("docs/operations.md", "text")]
    settings = next(text for text in told if "max_locks_per_transaction" in text)
    wanted = dict(line.split(" = ") for line in settings.splitlines())
    command = compose()["services"]["database"]["command"]
    assert command[0] == "postgres"
    given = dict(setting.split("=") for setting in command[2::2])
    assert int(wanted["max_locks_per_transaction"]) == health.LOCKS
    assert given == wanted | {"shared_buffers": given["shared_buffers"]}, "memory is each machine's own"


def test_dashboards_and_alerts_read_metrics_that_exist() -> None:
    assert metrics.requests is not None
    for integration in registry.integrations():
        for hook in filter(None, (integration.measure, integration.standbys)):
            registry.named(hook)  # its module declares the gauges
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


CHART = DEPLOY / "helm"


def objects(**changes: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(found["kind"], found["metadata"]["name"]): found for found in rendered(CHART, **changes)}


def test_the_chart_is_small_and_starts_what_the_product_has() -> None:
    files = [CHART / "Chart.yaml", CHART / "values.yaml", *(CHART / "templates").iterdir()]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 200
    made = objects()
    assert {kind for kind, _ in made} == {
        "Deployment", "Service", "Ingress", "PodDisruptionBudget", "PersistentVolumeClaim",
    }  # fmt: skip
    known = environment_names() | {"FORWARDED_ALLOW_IPS"}
    paths = {route.path for route in API_ROUTES} | {"/_stcore/health"}
    for name in ("hr", "hr-worker"):
        pod = made["Deployment", name]["spec"]["template"]
        labels = made["Deployment", name]["spec"]["selector"]["matchLabels"]
        assert labels == pod["metadata"]["labels"]
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {one["name"] for one in container["env"]} <= known
        assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["spec"]["volumes"]}
        if "args" in container:
            command_line().parse_args(container["args"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                assert container[probe]["httpGet"]["path"] in paths
    application = made["Deployment", "hr"]["spec"]["template"]["spec"]["containers"][0]
    values = {one["name"]: one["value"] for one in application["env"]}
    assert (values["RAG_PUBLIC_URL"], values["RAG_WORKER"]) == ("https://hr.example.com", "false")
    # The guard answers under the host of the settings alone.
    assert application["readinessProbe"]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "hr.example.com"}]
    assert made["Service", "hr"]["spec"]["selector"] == {"app": "hr"}
    affinity = made["Ingress", "hr"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/affinity"]
    assert affinity == "cookie", "a page's state is in one process"


def test_the_chart_follows_its_values() -> None:
    alone = objects(workers=0, replicas=1, settings={"RAG_SAMPLES": 'a "b"'})
    assert ("Deployment", "hr-worker") not in alone
    environment = alone["Deployment", "hr"]["spec"]["template"]["spec"]["containers"][0]["env"]
    values = {one["name"]: one["value"] for one in environment}
    assert (values["RAG_WORKER"], values["RAG_SAMPLES"]) == ("true", 'a "b"')
    scaled = objects(maxReplicas=6)
    assert "replicas" not in scaled["Deployment", "hr"]["spec"], "two would set the number of applications"
    assert scaled["HorizontalPodAutoscaler", "hr"]["spec"]["maxReplicas"] == 6
    backup = {**yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))["backup"], "schedule": "0 2 * * *"}
    job = objects(backup=backup)["CronJob", "hr-backup"]["spec"]
    assert job["schedule"] == "0 2 * * *"
    (container,) = job["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    done = subprocess.run(["sh", "-n"], input=container["args"][0], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-mtime +30" in container["args"][0]


@pytest.mark.skipif(shutil.which("helm") is None, reason="there is no Helm here")
def test_helm_renders_the_same() -> None:
    done = subprocess.run(["helm", "template", "hr", CHART], capture_output=True, text=True, check=True)
    made = {(found["kind"], found["metadata"]["name"]): found for found in yaml.safe_load_all(done.stdout) if found}
    assert made == objects()
