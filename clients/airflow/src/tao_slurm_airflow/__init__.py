"""The Airflow provider of tao-slurm: a hook, an operator and its trigger."""

from __future__ import annotations

from typing import Any

from tao_slurm_airflow.version import VERSION as __version__

__all__ = ["__version__", "get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """What Airflow reads by the entry point `apache_airflow_provider`."""
    integration = "tao-slurm"

    def modules(name: str) -> list[dict[str, Any]]:
        return [{"integration-name": integration, "python-modules": [f"tao_slurm_airflow.{name}"]}]

    return {
        "package-name": "airflow-provider-tao-slurm",
        "name": "tao-slurm",
        "description": "GPU jobs on Slurm clusters, run by tao-slurm",
        "versions": [__version__],
        "integrations": [{"integration-name": integration, "external-doc-url": "https://slurm.schedmd.com", "tags": ["service"]}],
        "hooks": modules("hook"),
        "operators": modules("operator"),
        "triggers": modules("trigger"),
        "extra-links": ["tao_slurm_airflow.link.TaoSlurmJobLink"],
        "connection-types": [
            {
                "connection-type": "tao_slurm",
                "hook-class-name": "tao_slurm_airflow.hook.TaoSlurmHook",
                "hook-name": "tao-slurm",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "login", "port", "extra"],
                    "relabeling": {"host": "Address", "password": "Token"},
                    "placeholders": {"host": "https://slurm.example.org", "password": "tsl_…"},
                },
            }
        ],
    }
