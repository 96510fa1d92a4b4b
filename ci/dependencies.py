"""Checks deny.toml against the graph of dependencies: bans, licenses and sources.

It does the work of `cargo deny check bans licenses sources`, which takes five minutes to build, and reads its format.
"""

import json
import re
import subprocess
import tomllib

WORDS = re.compile(r"[\w.+-]+(?: WITH [\w.+-]+)?")


def main() -> int:
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    command = ["cargo", "metadata", "--offline", "--locked", "--all-features", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    children = {node["id"]: shipped(node) for node in metadata["resolve"]["nodes"]}
    ours = [member for member in metadata["workspace_members"] if packages[member]["name"] not in rules["graph"]["exclude"]]

    found, left = set(), list(ours)
    while left:
        package = left.pop()
        if package not in found:
            found.add(package)
            left += children[package]

    faults = [fault for ban in rules["bans"]["deny"] for fault in banned(ban, found, children, packages)]
    allowed = set(rules["licenses"]["allow"])
    others = [packages[package] for package in found if package not in metadata["workspace_members"]]
    for package in others:
        if not is_free(package["license"] or "", allowed):
            faults.append(f"{package['name']} has the license {package['license']}, which deny.toml does not allow")
    # The sources of registries are equal if there is one registry.
    sources = {package["source"] for package in others}
    if len(sources) != 1 or not min(sources).startswith("registry+"):
        faults.append(f"packages come from {sources}, and not from one registry")
    for fault in sorted(faults):
        print(f"ci/fences: {fault}")
    return bool(faults)


def shipped(node: dict) -> list[str]:
    """The dependencies of a package that its tests are not alone in using."""
    return [dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]


def banned(ban: dict, found: set[str], children: dict[str, list[str]], packages: dict[str, dict]) -> list[str]:
    parents = (package for package in found for child in children[package] if packages[child]["name"] == ban["crate"])
    names = {packages[parent]["name"] for parent in parents} - set(ban["wrappers"])
    return [f"{name} depends on {ban['crate']}: {ban['reason']}" for name in names]


def is_free(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied. Old packages have a slash for OR."""
    words = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    known = {"OR": "or", "AND": "and"}
    truth = WORDS.sub(lambda word: known.get(word[0], str(word[0] in allowed)), words)
    return bool(truth) and re.fullmatch(r"(?:True|False|and|or|[() ])+", truth) is not None and eval(truth)


raise SystemExit(main())
