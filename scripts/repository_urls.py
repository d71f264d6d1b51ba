"""The repository's addresses in a package's metadata: where it is built by a workflow, that of the workflow's clone.

Hatch calls it; without these variables, as in a build at home, a package has the address of the documentation alone.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

DOCUMENTATION = "https://gpuzoo.readthedocs.io"


class RepositoryURLs(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = {"Documentation": DOCUMENTATION}
        server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
        if server and name:
            source = f"{server}/{name}"
            metadata["urls"] |= {
                "Source": source,
                "Issues": f"{source}/issues",
                "Changelog": f"{source}/blob/main/CHANGELOG.md",
            }
