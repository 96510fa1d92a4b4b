"""Compares two files of manifests, apart from what only a Helm release has: deploy/k8s and the chart must not drift apart.

usage: manifests-same.py KUSTOMIZE CHART
"""

import difflib
import pathlib
import re
import sys

import yaml


def of_a_release(key):
    """Whether only one of the two sides has this field."""
    return key in ("namespace", "imagePullPolicy", "app.kubernetes.io/instance", "checksum/config")


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if not of_a_release(key)}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def read(path):
    resources = {}
    for each in yaml.safe_load_all(pathlib.Path(path).read_text()):
        if each and each["kind"] != "Namespace":
            # Each revision of a release has its own migration.
            name = re.sub(r"-migrate-\d+$", "-migrate", each["metadata"].pop("name"))
            del each["metadata"]
            resources[f"{each['kind']} {name}"] = plain(each)
    return yaml.safe_dump(resources, sort_keys=True).splitlines()


differences = list(difflib.unified_diff(read(sys.argv[1]), read(sys.argv[2]), *sys.argv[1:3], lineterm=""))
print(*differences, sep="\n", end="\n" if differences else "", file=sys.stderr)
sys.exit(bool(differences))
