"""`python -m edgepack` and the installed script are the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig

import pytest

from conftest import MODELS

MLP = str(MODELS / "mlp_portable.pte")
SCRIPT = os.path.join(sysconfig.get_path("scripts"), "edgepack")


@pytest.mark.parametrize("command", [[sys.executable, "-m", "edgepack"], [SCRIPT]], ids=["module", "script"])
def test_the_command_runs(command: list[str]) -> None:
    def run(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*command, *args], input=stdin, capture_output=True, timeout=60)

    done = run("verify", MLP)
    assert (done.returncode, done.stderr) == (0, b"") and b"valid" in done.stdout
    assert json.loads(run("inspect", "-", "--json", stdin=open(MLP, "rb").read()).stdout)["schema"] == "edgepack/inspect/1"
    assert run("verify", "nothing.pte").returncode == 3
    assert run("nonsense").returncode == 2
    assert run("--version").returncode == 0


def test_a_closed_pipe_ends_it_without_words() -> None:
    reader = subprocess.Popen(
        [sys.executable, "-m", "edgepack", "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert reader.stdout is not None and reader.stderr is not None
    reader.stdout.close()
    assert reader.stderr.read() == b""
    assert reader.wait(60) in (0, 1, 3)
