"""Checks what schemas cannot: that the manifests of a directory fit together, that their pods have few privileges and a fixed version,
and that the network policies let them reach what the configuration can name. Of a Compose file, it checks the versions of its images.

usage: manifests.py DIRECTORY|COMPOSE_FILE VERSION
"""

import pathlib
import sys
import tomllib
import urllib.parse

import yaml

problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


given, version = pathlib.Path(sys.argv[1]), sys.argv[2]
compose = yaml.safe_load(given.read_text()) if given.is_file() else {"services": {}}
for name, service in compose["services"].items():
    image = service.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    check(tag not in ("", "latest"), f"{given} {name}: the image `{image}` has no fixed tag")
    check("build" not in service or tag == version, f"{given} {name}: {image} is not version {version}")

resources = [
    document
    for path in sorted(given.glob("*.yaml") if given.is_dir() else [])
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text())
    if document
]
names = {(each["kind"], each["metadata"]["name"]) for each in resources}
pods = {}
for each in resources:
    if each["kind"] in ("Deployment", "Job"):
        pods[each["metadata"]["name"]] = each["spec"]["template"]

for name, template in pods.items():
    spec = template["spec"]
    check(("ServiceAccount", spec["serviceAccountName"]) in names, f"{name}: no such service account")
    check(spec.get("automountServiceAccountToken") is False, f"{name}: mounts a Kubernetes token")
    inside = spec["securityContext"]
    check(inside.get("runAsNonRoot") is True, f"{name}: may run as root")
    check(inside.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{name}: has no seccomp profile")
    volumes = {volume["name"] for volume in spec["volumes"]}
    for volume in spec["volumes"]:
        wanted = volume.get("configMap") and ("ConfigMap", volume["configMap"]["name"])
        wanted = wanted or volume.get("secret") and ("Secret", volume["secret"]["secretName"])
        check(not wanted or wanted in names, f"{name}: no {wanted}")
    for container in spec["initContainers"] + spec["containers"]:
        of = f"{name}/{container['name']}"
        check(container["image"].endswith(f":{version}"), f"{of}: {container['image']} is not version {version}")
        inside = container["securityContext"]
        check(inside.get("allowPrivilegeEscalation") is False, f"{of}: allows privilege escalation")
        check(inside.get("readOnlyRootFilesystem") is True, f"{of}: has a writable root file system")
        check(inside.get("capabilities") == {"drop": ["ALL"]}, f"{of}: keeps capabilities")
        check("memory" in container["resources"]["limits"], f"{of}: has no memory limit")
        for mount in container["volumeMounts"]:
            check(mount["name"] in volumes, f"{of}: no volume {mount['name']}")
        for source in container.get("envFrom", []):
            check(("Secret", source["secretRef"]["name"]) in names, f"{of}: its environment secret is missing")
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                check(container[probe]["httpGet"]["port"] in ports, f"{of}: {probe} uses an unknown port")


def selected(selector):
    """The pods that a selector matches."""
    wanted = selector.items()
    return [name for name, template in pods.items() if wanted <= template["metadata"]["labels"].items()]


for each in resources:
    name, spec = f"{each['kind']} {each['metadata']['name']}", each.get("spec", {})
    if each["kind"] == "Deployment":
        check(selected(spec["selector"]["matchLabels"]) == [each["metadata"]["name"]], f"{name}: selects other pods")
    elif each["kind"] == "PodDisruptionBudget":
        check(len(selected(spec["selector"]["matchLabels"])) == 1, f"{name}: does not match one deployment")
    elif each["kind"] == "Service":
        check(selected(spec["selector"]) == ["tao-slurm-api"], f"{name}: does not select the API")
    elif each["kind"] == "NetworkPolicy":
        check(selected(spec["podSelector"]["matchLabels"]), f"{name}: selects no pod")

services = {each["metadata"]["name"]: each["spec"] for each in resources if each["kind"] == "Service"}
for each in resources:
    for rule in each["spec"]["rules"] if each["kind"] == "Ingress" else []:
        for path in rule["http"]["paths"]:
            backend = path["backend"]["service"]
            ports = [port["name"] for port in services.get(backend["name"], {}).get("ports", [])]
            check(backend["port"]["name"] in ports, f"Ingress: no service {backend}")


def egress(pod):
    """The TCP ports that the network policies let a pod reach outside of kube-system, or None for all."""
    ports, is_restricted = set(), False
    for each in resources:
        if each["kind"] != "NetworkPolicy" or "Egress" not in each["spec"]["policyTypes"]:
            continue
        if pod not in selected(each["spec"]["podSelector"]["matchLabels"]):
            continue
        is_restricted = True
        for rule in each["spec"]["egress"]:
            if "to" not in rule:
                ports |= {port["port"] for port in rule["ports"] if port["protocol"] == "TCP"}
    return ports if is_restricted else None


def needed():
    """What each part may have to reach: the documented ports of every key that names a remote address, and those of this configuration."""
    database, cluster, web, traces = (5432, "database.url"), (22, "clusters.hosts"), 443, (4318, "telemetry.otlp_endpoint")
    both = {database, cluster, traces}
    needs = {"migrate": {database}, "api": both | {(web, "auth.jwt.jwks_url")}, "worker": both | {(web, "webhooks")}}
    for each in resources:
        for text in each["data"].values() if each["kind"] == "ConfigMap" else []:
            config = tomllib.loads(text)
            for host in (host for one in config.get("clusters", []) for host in one["hosts"]):
                port = (int(host.rpartition(":")[2]) if ":" in host else 22, "clusters.hosts")
                needs["api"].add(port), needs["worker"].add(port)
            for part, table, key in (
                ("api", config.get("auth", {}).get("jwt", {}), "jwks_url"),
                ("api", config.get("telemetry", {}), "otlp_endpoint"),
                ("worker", config.get("telemetry", {}), "otlp_endpoint"),
            ):
                if key in table:
                    url = urllib.parse.urlsplit(table[key])
                    needs[part].add((url.port or {"http": 80, "https": 443}[url.scheme], key))
    return needs


for part, needs in needed().items():
    for name in [name for name in pods if name.endswith(f"-{part}") or f"-{part}-" in name]:
        allowed = egress(name)
        for port, key in sorted(needs):
            check(allowed is None or port in allowed, f"{name}: no network policy allows port {port} ({key})")

for problem in problems:
    print(f"ci/manifests: {problem}", file=sys.stderr)
sys.exit(bool(problems))
