"""Build a wheel that carries the machine code of all kernels, so that its first run compiles nothing.

    make wheel

Hatchling calls this for wheels if HATCH_BUILD_HOOK_ENABLE_CUSTOM is set; the environment must have what likewise needs.
The wheel is then one for this platform and version of Python. Its code is for a processor that most machines of the
platform include (BASELINES in kernels/cache.py), and is used with the version of Numba that compiled it: with another
version, or on an older processor, kernels are compiled in the first run, as they are from the wheel for all platforms.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent.parent
GLIBC = "2_28"
"""The C library that Numba's own wheels need; the code itself calls nothing newer."""

DESCRIBE = """
import json, sys
from numba.core.registry import cpu_target
from likewise.kernels import cache
processor = cpu_target.target_context.codegen().magic_tuple()
print(cache.cache_directory())
print(json.dumps({"for": cache.made_for(), "processor": processor}))
"""


class MachineCode(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the kernels and adds them to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the package is only linked to its sources."""
        if version == "editable":
            return
        self._made = Path(tempfile.mkdtemp(prefix="likewise-wheel-"))
        compile_into(self._made / "compiled", self._made / "cache")
        build_data["pure_python"] = False
        build_data["tag"] = tag()
        build_data["force_include"][str(self._made / "compiled")] = "likewise/kernels/compiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if version != "editable":
            shutil.rmtree(self._made)


def compile_into(folder: Path, cache: Path, *command: str) -> None:
    """Compile for the baseline what `likewise warmup` runs, or another command of Python, and put the code there."""
    environment = {**os.environ, **for_the_baseline(), "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, *(command or ("-m", "likewise", "warmup"))], env=environment, check=True)
    described = subprocess.run([sys.executable, "-c", DESCRIBE], env=environment, check=True, stdout=subprocess.PIPE)
    made, target = described.stdout.decode().splitlines()
    from likewise.kernels.cache import SUFFIX, TARGET

    folder.mkdir(parents=True)
    for file in Path(made).glob(f"*{SUFFIX}"):
        shutil.copy(file, folder)
    (folder / TARGET).write_text(target)


def for_the_baseline() -> dict[str, str]:
    """Return the environment in which kernels are compiled for the baseline of this platform."""
    sys.path.insert(0, str(ROOT / "src"))
    from likewise.kernels.cache import BASELINES, NATIVE

    processor = BASELINES.get((sys.platform, platform.machine()))
    if processor is None:
        sys.exit(f"no baseline is known for {sys.platform} on {platform.machine()}; add one to kernels/cache.py")
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", NATIVE: "1"}


def tag() -> str:
    """Return the tag of wheels for this platform and version of Python."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if system.startswith("linux_"):
        system = f"manylinux_{GLIBC}_{platform.machine()}"
    return f"{python}-{python}-{system}"
