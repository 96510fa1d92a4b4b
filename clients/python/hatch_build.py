"""Makes the generated half of the package when a wheel is built."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        import generation

        root = Path(self.root)
        if self.target_name == "sdist":
            build_data["force_include"][str(generation.find_document(root))] = "openapi.json"
        else:
            generation.make(root)
