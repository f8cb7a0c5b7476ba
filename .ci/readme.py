"""The README of the package. On the index there are no files beside it, so its links lead to the public address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK: Final = re.compile(r"(?P<is_picture>!?)\[(?P<words>[^]]*)\]\((?!https?:|#)(?P<target>[^)\s]+)\)")


class Readme(MetadataHookInterface):
    """Sets the field `readme`; without a `Source` in `[project.urls]` the links stay as they are."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": text if source is None else linked(text, source)}


def linked(text: str, source: str) -> str:
    """The text with absolute links, and with pictures as files and not as pages about them."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["is_picture"] else "blob"
        return f"{link['is_picture']}[{link['words']}]({source.rstrip('/')}/{kind}/HEAD/{link['target']})"

    return _LINK.sub(absolute, text)
