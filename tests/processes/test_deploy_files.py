"""The files that deploy the example: one command, one grace, one set of probes in all of them.

What the formats demand is checked by linters, in the environment ``lint``.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class

from django_declarative_cron.core.options import Options
from django_declarative_cron.monitoring.metric_defs import text_of
from django_declarative_cron.runtime.probes import PATHS

from ..conftest import CHECKOUT

DEPLOY = CHECKOUT / "example_project" / "deploy"
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
UNIT = DEPLOY / "systemd" / "shop-scheduler.service"
METRICS_PORT = "9464"
ENTRY = [
    *("python", "manage.py", "runscheduler"),
    *("--health-port=8080", "--health-host=0.0.0.0"),
    *(f"--metrics-port={METRICS_PORT}", "--metrics-host=0.0.0.0"),
]


def documents() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in documents() if "template" in each["spec"]]


def schedulers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (pod, container)
        for pod in pods()
        for container in [*pod.get("initContainers", []), *pod["containers"]]
        if "runscheduler" in container["command"]
    ]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def test_the_same_command_starts_the_scheduler_everywhere() -> None:
    image = (DEPLOY / "Dockerfile").read_text().replace("\\\n", "")
    (command,) = re.findall(r"^CMD (.+)$", image, re.MULTILINE)
    assert json.loads(command) == ENTRY
    assert compose()["services"]["scheduler"]["command"] == ENTRY
    assert [container["command"] for _, container in schedulers()] == [ENTRY, ENTRY]
    parser = load_command_class("django_declarative_cron", "runscheduler")
    assert parser.create_parser("manage.py", "runscheduler").parse_args(ENTRY[3:])


def test_every_container_waits_longer_than_the_scheduler() -> None:
    grace = Options().GRACE + timedelta(seconds=2)
    waits = [pod["terminationGracePeriodSeconds"] for pod, _ in schedulers()]
    waits.append(int(compose()["services"]["scheduler"]["stop_grace_period"].rstrip("s")))
    waits.append(int(unit()["Service"]["TimeoutStopSec"]))
    assert len(waits) == 4
    assert all(timedelta(seconds=seconds) > grace for seconds in waits)


def test_an_init_process_reaps_what_callbacks_leave_behind() -> None:
    assert compose()["services"]["scheduler"]["init"] is True
    assert [pod["shareProcessNamespace"] for pod, _ in schedulers()] == [True, True]


def test_the_probes_are_those_that_are_answered() -> None:
    probes = [
        (container[probe]["httpGet"]["path"], container[probe]["httpGet"]["port"])
        for _, container in schedulers()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        if probe in container
    ]
    assert {path for path, _ in probes} == set(PATHS)
    assert {port for _, port in probes} == {"health"}


def test_prometheus_asks_every_scheduler_where_it_answers() -> None:
    asked = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    ((found,),) = (each["dns_sd_configs"] for each in asked["scrape_configs"])
    assert (found["names"], str(found["port"])) == (["scheduler"], METRICS_PORT)
    ports = [
        {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        for _, container in schedulers()
    ]
    assert ports == [{"health": "8080", "metrics": METRICS_PORT}] * 2
    notes = [
        each["spec"]["template"]["metadata"]["annotations"]
        for each in documents()
        if each["kind"] == "Deployment"
    ]
    assert notes == [{"prometheus.io/scrape": "true", "prometheus.io/port": METRICS_PORT}] * 2
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", (DEPLOY / "Dockerfile").read_text())
    assert {"metrics", "postgres"} <= set(extras.split(","))


def test_what_watches_is_started_only_when_asked_for_and_has_its_files() -> None:
    file = compose()
    watching = {name: each for name, each in file["services"].items() if "configs" in each}
    assert {name: each["profiles"] for name, each in watching.items()} == {
        "prometheus": ["watch"],
        "grafana": ["watch"],
    }
    mounted = [each for service in watching.values() for each in service["configs"]]
    assert {each["source"] for each in mounted} == set(file["configs"])
    for each in file["configs"].values():
        assert (DEPLOY / each["file"]).is_file()
    places = {each["source"]: Path(each["target"]) for each in mounted}
    asked = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    assert asked["rule_files"] == [places["alerts"].name]
    assert places["alerts"].parent == places["prometheus"].parent
    folder = yaml.safe_load((DEPLOY / "grafana" / "folder.yml").read_text(encoding="utf-8"))
    assert folder["providers"][0]["options"]["path"] == str(places["dashboard"].parent)
    for name in ("alerts", "dashboard"):
        shipped = (DEPLOY / file["configs"][name]["file"]).read_text(encoding="utf-8")
        assert shipped == text_of(name)


def test_by_hand_the_same_is_installed_as_in_the_image() -> None:
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    by_hand = (CHECKOUT / "docs" / "going-live.md").read_text(encoding="utf-8")
    found = [
        re.sub(r"'|>=[\d.]+", "", words).split()
        for words in (
            *re.findall(r"pip install .*--quiet \\\n +(.+)", image),
            *re.findall(r"\$ pip install (.+)", by_hand),
        )
    ]
    assert found[0] == found[1]
    assert len(found) == 2


def test_two_schedulers_are_asked_for_and_one_stays_while_nodes_are_drained() -> None:
    assert compose()["services"]["scheduler"]["deploy"]["replicas"] == 2
    by_kind = {(each["kind"], each["metadata"]["name"]): each for each in documents()}
    budget = by_kind["PodDisruptionBudget", "shop-scheduler"]["spec"]
    deployment = by_kind["Deployment", "shop-scheduler"]["spec"]
    assert (deployment["replicas"], budget["minAvailable"]) == (2, 1)
    assert budget["selector"] == deployment["selector"]


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["containers"][0]["name"])
def test_no_pod_has_rights_that_it_does_not_need(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        confined = container["securityContext"]
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"] == {"drop": ["ALL"]}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read(UNIT, encoding="utf-8")
    return parser


def test_the_unit_is_not_restarted_for_a_mistake_in_the_settings() -> None:
    service = unit()["Service"]
    assert (service["Type"], service["RestartPreventExitStatus"]) == ("notify", "2")
    assert service["ExecStart"].split()[1:] == ENTRY[1:3]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8")
    here.write_text(re.sub(r"(?m)^(ExecStart=)\S+", rf"\1{sys.executable}", text))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_pgbouncer_gives_a_connection_for_the_length_of_a_transaction() -> None:
    parser = configparser.ConfigParser(comment_prefixes=";")
    parser.read(DEPLOY / "pgbouncer.ini", encoding="utf-8")
    assert parser["pgbouncer"]["pool_mode"] == "transaction"


def test_the_settings_are_complete(project_environment: dict[str, str]) -> None:
    given = {
        "SECRET_KEY": "x" * 60,
        "ALLOWED_HOSTS": "shop.example",
        "RELEASE": "1.2",
        "SLACK_URL": "https://hooks.example.org/a",
        "PING_URL": "https://ping.example.org/key/{slug}",
    }
    environment = {**project_environment, **given, "DJANGO_SETTINGS_MODULE": "config.deployed"}
    shown = (
        "import logging; from django.conf import settings; "
        "from django_declarative_cron import conf; "
        "tasks = conf.declarations(settings.SCHEDULED_TASKS); "
        "[channel] = conf.options().NOTIFY; assert channel.kind == 'slack'; "
        "assert conf.options().MONITOR.every_task; "
        "logging.getLogger('shop').warning('late'); "
        "print([each.name for each in tasks], conf.options().RELEASE)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "shell", "--no-imports", "--command", shown],
        cwd=CHECKOUT / "example_project",
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    logged = json.loads(done.stderr)
    assert (logged["logger"], logged["level"], logged["message"]) == ("shop", "WARNING", "late")
    assert logged["time"].endswith("+00:00")
    assert "'sales-digest'" in done.stdout
    assert "'backup-database'" not in done.stdout
    assert done.stdout.endswith("1.2\n")
