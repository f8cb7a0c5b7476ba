"""Messages that are larger than a record may be: what is stored of them, so that no turn fails because of its size."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from memory_core.adapting import MAX_DATA_BYTES, cut_to_bytes, fits_data, json_bytes

if TYPE_CHECKING:
    from memory_core import Json

Fields = dict[str, Any]
"""Any: JSON, of which LangChain's classes determine the shape."""

SMALL_BYTES: Final = 300
"""Parts up to this size are always kept; none of them can be nested too deeply for `data`."""
_LARGE: Final = 100_000
"""Characters and values."""
_CUT: Final = "\n[… {left_out:,} of {all:,} characters: too large to be remembered]"
_CUT_BYTES: Final = 100
"""Most bytes of that note."""
_PLACEHOLDER_TEXT: Final = "[{kind}, {size:,} bytes: too large to be remembered]"
_PLACEHOLDER: Final = re.compile(r"\[[\w.+/ -]{1,100}, [\d,]+ bytes: too large to be remembered\]")
_DATA_URL: Final = re.compile(r"data:([\w.+-]{1,49}/[\w.+-]{1,49})?[^,]{0,200};base64,")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_TYPES: Final = ("mime_type", "media_type", "type", "format")
"""Keys under which a block tells what it is, the most exact first."""
_FILES: Final = ("base64", "data", "file_data")
"""Keys whose text is a file in base64."""
_OBJECTS: Final = ("args", "additional_kwargs", "response_metadata")
"""Fields in which LangChain expects an object."""
_REQUIRED: Final = ("tool_call_id", "role")
"""Fields without which LangChain cannot make a message; both are texts."""
_NAME: Final = re.compile(r"[\w.+/-]{1,100}")


def fitting(fields: Fields, stored: Callable[[Any], Json]) -> Fields:
    """The fields of a message, shortened if they are too large for the data of a record.

    First the largest parts that are not text (images, other media, arguments and artifacts of tools) are replaced by a
    placeholder with type and size, until the rest fits. If many small ones are too much together, all arguments of a
    call or all metadata are replaced at once. If the texts are too large, the longest is cut. If even that is not
    enough, the text is kept, cut if needed, and one placeholder stands for the largest fields.

    Args:
        fields: The fields as JSON; they may be changed in place.
        stored: The data of a record with these fields.
    """

    def fits(fields: Fields) -> bool:
        return fits_data(stored(fields))

    if fits(fields) or _replace(_replaceable(fields), fields, fits) or _replace(_groups(fields), fields, fits):
        return fields
    _cut_texts(fields, json_bytes(stored(fields)))
    return fields if fits(fields) else _essence(fields, stored)


def is_large(message: object) -> bool:
    """Whether converting a message would block a loop for more than about a millisecond."""
    room, values = _LARGE, list[object](getattr(message, "__dict__", {}).values())
    while values:
        value = values.pop()
        inside = _list(value) or _block(value)
        room -= len(value) if isinstance(value, str) else 1 + len(inside)
        if room < 0:
            return True
        values += inside if isinstance(inside, list) else inside.values()
    return False


def is_placeholder(block: object) -> bool:
    """Whether a block of a message stands for content that was not stored."""
    text = _block(block).get("text")
    return isinstance(text, str) and _PLACEHOLDER.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A value in a message, and where it is."""

    place: Any
    """The list or the dictionary that contains it."""
    key: Any
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class _Replaceable(_Part):
    value: object
    placeholder: object

    def set(self, *, replaced: bool) -> None:
        self.place[self.key] = self.placeholder if replaced else self.value


@dataclass(frozen=True, slots=True, eq=False)
class _Text(_Part):
    def cut(self, room: int) -> int:
        """Cut the text to its beginning and a note, which have at most this many bytes together; return how many."""
        self.place[self.key] = _cut(self.place[self.key], room)
        return json_bytes(self.place[self.key])


def _cut(text: str, room: int) -> str:
    kept = cut_to_bytes(text, max(room - _CUT_BYTES, 0))
    return kept + _CUT.format(left_out=len(text) - len(kept), all=len(text))


def _replace(found: Iterable[_Replaceable], fields: Fields, fits: Callable[[Fields], bool]) -> bool:
    """Replace as few parts as needed, the largest first; return whether the fields fit then."""
    parts = sorted(found, key=lambda part: part.size, reverse=True)

    def is_enough(count: int) -> bool:
        for at, part in enumerate(parts):
            part.set(replaced=at < count)
        return fits(fields)

    # Measured a few times, not after each part: there may be thousands of them.
    return is_enough(bisect_left(range(len(parts)), 1, key=is_enough))


def _cut_texts(fields: Fields, size: int) -> None:
    """Cut the longest texts, if that is enough for fields that are stored in this many bytes."""
    texts = sorted(
        (text for text in _texts(fields) if text.size > SMALL_BYTES), key=lambda text: text.size, reverse=True
    )
    if size - sum(text.size - _CUT_BYTES for text in texts) > MAX_DATA_BYTES:
        return
    for text in texts:
        if size <= MAX_DATA_BYTES:
            break
        others = size - text.size
        size = others + text.cut(MAX_DATA_BYTES - others)


def _essence(fields: Fields, stored: Callable[[Any], Json]) -> Fields:
    """What always fits: the text, the fields that are small enough, and one placeholder for the others."""
    sizes = {name: json_bytes(value) for name, value in fields.items() if name != "type"}
    names = sorted(sizes, key=lambda name: sizes[name], reverse=True)
    content = fields.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
    said = "".join(text.place[text.key] for text in _texts(fields))

    def without(count: int) -> Fields:
        gone = dict.fromkeys(names[:count])
        kept = {name: value for name, value in fields.items() if name not in gone}
        kept |= {name: _described(fields[name]) for name in gone if name in _REQUIRED}
        size = sum(sizes[name] for name in gone)
        if "content" not in gone:
            return kept | {"content": [*blocks, _placeholder("content", size)]}
        room = MAX_DATA_BYTES - json_bytes(stored(kept)) - SMALL_BYTES
        room = max(room, MAX_DATA_BYTES // 2)
        text = said if json_bytes(said) <= room else _cut(said, room)
        rest = _placeholder("content", max(size - json_bytes(text), 0))
        return kept | {"content": [{"type": "text", "text": text}, rest] if text else [rest]}

    return without(bisect_left(range(len(names)), 1, key=lambda count: fits_data(stored(without(count)))))


def _placeholder(kind: str, size: int) -> Fields:
    return {"type": "text", "text": _PLACEHOLDER_TEXT.format(kind=kind, size=size)}


def _replaceable(fields: Fields) -> Iterator[_Replaceable]:
    """The large parts that a message can do without."""
    for name, value in fields.items():
        if name == "content":
            blocks = _list(value)
            yield from _large((blocks, at) for at, block in enumerate(blocks) if _is_medium(block))
        elif name == "tool_calls":
            yield from _large(
                (arguments, key) for call in _list(value) for arguments in [call["args"]] for key in arguments
            )
        elif name == "invalid_tool_calls":
            yield from _large((call, key) for call in _list(value) for key in ("args", "error") if key in call)
        elif name == "artifact":
            yield from _large([(fields, name)])
        elif inside := _block(value):
            yield from _large((inside, key) for key in inside)


def _groups(fields: Fields) -> Iterator[_Replaceable]:
    """The arguments of each call and the metadata, if they are large together."""
    yield from _large((call, "args") for call in _list(fields.get("tool_calls")))
    yield from _large((fields, name) for name in ("additional_kwargs", "response_metadata") if _block(fields.get(name)))


def _texts(fields: Fields) -> Iterator[_Text]:
    content = fields.get("content")
    if isinstance(content, str):
        yield _Text(fields, "content", json_bytes(content))
    for at, block in enumerate(_list(content)):
        text = block if isinstance(block, str) else _block(block).get("text")
        if isinstance(text, str):
            place, key = (content, at) if isinstance(block, str) else (block, "text")
            yield _Text(place, key, json_bytes(text))


def _large(places: Iterable[tuple[Any, Any]]) -> Iterator[_Replaceable]:
    for place, key in places:
        value = place[key]
        size = json_bytes(value)
        if size > SMALL_BYTES:
            yield _Replaceable(place, key, size, value, _instead(value, place, key))


def _instead(value: object, place: object, key: object) -> object:
    """A placeholder of the type that belongs at the place of a value."""
    text = _described(value)
    if isinstance(place, list):
        return {"type": "text", "text": text}
    return {"left_out": text} if key in _OBJECTS and isinstance(value, dict) else text


def _is_medium(block: object) -> bool:
    """Whether a block of content is something else than text."""
    fields = _block(block)
    return bool(fields) and not isinstance(fields.get("text"), str)


def _block(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if _is_list(value) else []


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _described(value: object) -> str:
    """A placeholder with the type and the size of a value; of a file in base64, that of the file itself."""
    found = dict(_leaves(value))
    data = max((text for text in found.values()), key=len, default="")
    url = _DATA_URL.match(data)
    encoded = data[url.end() :] if url else data
    of_url = url.group(1) if url else None
    kind = of_url or next((found[key] for key in _TYPES if _NAME.fullmatch(found.get(key, ""))), "content")
    is_file = (url or data in (found.get(key) for key in _FILES)) and _BASE64.fullmatch(encoded)
    size = len(encoded.rstrip("=")) * 3 // 4 if is_file else json_bytes(value)
    return _PLACEHOLDER_TEXT.format(kind=kind, size=size)


def _leaves(value: object, key: str = "", levels: int = 6) -> Iterator[tuple[str, str]]:
    """The texts in a value by their nearest key, outer ones last."""
    if isinstance(value, str):
        yield key, value
    elif levels:
        inside = _block(value)
        for name in sorted(inside, key=lambda name: isinstance(inside[name], str)):
            yield from _leaves(inside[name], str(name), levels - 1)
        for item in _list(value):
            yield from _leaves(item, key, levels - 1)
