"""Generates src/hintd_client/_generated from the repository's proto/: `python generate.py`. Needs grpcio-tools."""

from __future__ import annotations

import re
import shutil
import sys
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
OUT = HERE / "src" / "hintd_client" / "_generated"
PACKAGE = "hintd_client._generated"
# `from hintd.v1 import x` would claim the top-level names `hintd` and `hadoop` for everybody.
IMPORT = re.compile(r"^(from|import) (hintd|hadoop)\.", re.MULTILINE)


def generate() -> None:
    """Replaces the generated package; leaves it alone where there are no sources (an unpacked sdist has it)."""
    if not PROTO.is_dir():
        if OUT.is_dir():
            return
        sys.exit(f"no {PROTO}: generate in a checkout of hintd")
    from grpc_tools import protoc

    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    # What applications and controllers need: operators have hintctl.
    files = ["hadoop/yarn/yarn_protos.proto"]
    files += [f"hintd/v1/{name}.proto" for name in ("common", "placement", "feed", "routes")]
    well_known = resources.files("grpc_tools") / "_proto"
    options = [f"-I{PROTO}", f"-I{well_known}", f"--python_out={OUT}", f"--pyi_out={OUT}", f"--grpc_python_out={OUT}"]
    if protoc.main(["protoc", *options, *files]) != 0:
        sys.exit("protoc failed")
    for file in [*OUT.rglob("*.py"), *OUT.rglob("*.pyi")]:
        file.write_text(IMPORT.sub(rf"\1 {PACKAGE}.\2.", file.read_text()))
    for folder in [OUT, *(path for path in OUT.rglob("*") if path.is_dir())]:
        (folder / "__init__.py").touch()


if __name__ == "__main__":
    generate()
