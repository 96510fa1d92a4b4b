"""Checks of the Kubernetes manifests beyond the schemas: their references, and the restrictions of their pods."""

import pathlib
import sys

import yaml

problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


folder = pathlib.Path(sys.argv[1])
resources = [
    document
    for path in sorted(folder.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text())
]
names = {(each["kind"], each["metadata"]["name"]) for each in resources}
pods = {}
for each in resources:
    if each["kind"] in ("Deployment", "Job"):
        pods[each["metadata"]["name"]] = each["spec"]["template"]

for name, template in pods.items():
    spec = template["spec"]
    check(("ServiceAccount", spec["serviceAccountName"]) in names, f"{name}: its service account does not exist")
    check(spec.get("automountServiceAccountToken") is False, f"{name}: mounts a Kubernetes token")
    inside = spec["securityContext"]
    check(inside.get("runAsNonRoot") is True, f"{name}: may run as root")
    check(inside.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{name}: has no seccomp profile")
    volumes = {volume["name"] for volume in spec["volumes"]}
    for volume in spec["volumes"]:
        wanted = volume.get("configMap") and ("ConfigMap", volume["configMap"]["name"])
        wanted = wanted or volume.get("secret") and ("Secret", volume["secret"]["secretName"])
        check(not wanted or wanted in names, f"{name}: {wanted} does not exist")
    for container in spec["initContainers"] + spec["containers"]:
        of = f"{name}/{container['name']}"
        inside = container["securityContext"]
        check(inside.get("allowPrivilegeEscalation") is False, f"{of}: allows privilege escalation")
        check(inside.get("readOnlyRootFilesystem") is True, f"{of}: its root file system is writable")
        check(inside.get("capabilities") == {"drop": ["ALL"]}, f"{of}: keeps capabilities")
        check("memory" in container["resources"]["limits"], f"{of}: has no memory limit")
        for mount in container["volumeMounts"]:
            check(mount["name"] in volumes, f"{of}: missing volume {mount['name']}")
        for source in container.get("envFrom", []):
            check(("Secret", source["secretRef"]["name"]) in names, f"{of}: the secret for its environment does not exist")
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
        check(len(selected(spec["selector"]["matchLabels"])) == 1, f"{name}: does not select exactly one deployment")
    elif each["kind"] == "Service":
        check(selected(spec["selector"]) == ["tao-slurm-api"], f"{name}: does not select the API")
    elif each["kind"] == "NetworkPolicy":
        check(selected(spec["podSelector"]["matchLabels"]), f"{name}: selects no pod")

listed = set(yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"])
there = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml", "secrets.example.yaml"}
check(listed == there, f"kustomization.yaml and the files differ: {sorted(listed ^ there)}")

for problem in problems:
    print(f"ci/manifests: {problem}", file=sys.stderr)
sys.exit(bool(problems))
