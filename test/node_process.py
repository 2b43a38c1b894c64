"""A node of ours in a process of its own, as users run it."""

import subprocess
import sys

import yaml
from paths import ROOT
from waiting import PATIENCE_S


class NodeProcess(subprocess.Popen):
    """The process of the node of a name, with its parameters in a file in a folder."""

    def __init__(self, name, folder, values, **options):
        file = folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({name: {"ros__parameters": values}}))
        module = f"contact_id_controller.ros.{name}"
        command = [sys.executable, "-m", module, "--ros-args", "--params-file", str(file)]
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        super().__init__(command, cwd=ROOT, **{**pipe, **options})

    def is_running(self):
        return self.poll() is None

    def finish(self):
        """Exit code and what was printed."""
        output, _ = self.communicate(timeout=PATIENCE_S)
        return self.returncode, output

    def end(self):
        """Kill what still runs."""
        if self.is_running():
            self.kill()
            self.wait()
