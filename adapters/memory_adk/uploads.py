"""The names of the files that a person attaches to a message of ADK."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from google.genai import types

from memory_core.adapting import SentFile, name_in_uri

_ARTIFACT: Final = re.compile(r'\s*\[Uploaded Artifact: "(?:user:)?(.*)"\]\s*', re.DOTALL)
"""The text that `SaveFilesAsArtifactsPlugin` puts in the place of a file."""
_OF_USER: Final = "user:"
"""Before the names of files that are to outlive their session, as artifacts."""
_UNNAMED: Final = re.compile(r"artifact_.*_\d+", re.DOTALL)
"""The name that it gives to a file without one."""
_RECORDED: Final = "/_adk_live/"
"""In the address of what a person said in a call, which ADK records and transcribes."""


def files_in(parts: Sequence[types.Part]) -> Iterator[SentFile]:
    """The files in the parts of a message."""
    for part in parts:
        if (blob := part.inline_data) is not None:
            yield SentFile(name_in(part), blob.mime_type)
        elif (file := part.file_data) is not None and _RECORDED not in (file.file_uri or ""):
            yield SentFile(name_of(file), file.mime_type)
        elif (name := artifact_in(part)) is not None:
            yield SentFile(None if _UNNAMED.fullmatch(name) else name)


def contents_of(parts: Sequence[types.Part]) -> Iterator[bytes | str]:
    """The contents by which the files in the parts of a message are recognised, or the addresses of the contents."""
    for part in parts:
        if part.inline_data is not None:
            yield part.inline_data.data or b""
        elif part.file_data is not None:
            yield part.file_data.file_uri or ""


def renamed(part: types.Part, rename: Callable[[str], str]) -> types.Part:
    """A copy of a part in which a file has another name, and no address that tells the name."""
    if (blob := part.inline_data) is not None and blob.display_name:
        blob = blob.model_copy(update={"display_name": rename(blob.display_name)})
        return part.model_copy(update={"inline_data": blob})
    if (file := part.file_data) is not None and (name := name_of(file)):
        file = file.model_copy(update={"display_name": rename(name), "file_uri": ""})
        return part.model_copy(update={"file_data": file})
    return part


def name_in(part: types.Part) -> str | None:
    """The name of the file in a part, if it has one."""
    name = part.inline_data.display_name if part.inline_data is not None else None
    return name and name.removeprefix(_OF_USER)


def name_of(file: types.FileData) -> str | None:
    """The name of a file that is elsewhere, if it has one."""
    return file.display_name or name_in_uri(file.file_uri)


def artifact_in(part: types.Part) -> str | None:
    """The name of the artifact that a part stands for, if it stands for one."""
    found = _ARTIFACT.fullmatch(part.text or "")
    return found[1] if found else None
