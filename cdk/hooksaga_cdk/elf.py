"""Removes debug data from shared libraries of any machine type."""

import shutil
import struct
from pathlib import Path

MAGIC = b"\x7fELF\x02\x01"
"""Magic number of 64-bit little-endian ELF files: x86-64 and AArch64."""

_PROGRAM_TABLE_OFFSET, _SECTION_TABLE_OFFSET = 0x20, 0x28
_PROGRAM_ENTRIES = struct.Struct("<HH")
_PROGRAM_ENTRIES_OFFSET, _SECTION_ENTRIES_OFFSET = 0x36, 0x3C
_NUMBER = struct.Struct("<Q")


def strip(path: Path) -> int:
    """Cut off sections that no segment contains (for debuggers and linkers) and return the number of bytes removed.

    A loader maps segments and reads no sections. Linkers write them at the end of the file, after all segments;
    otherwise less is removed. Other files are not changed.
    """
    content = bytearray(path.read_bytes())
    if not content.startswith(MAGIC):
        return 0
    end = max(_segment_ends(content))
    _NUMBER.pack_into(content, _SECTION_TABLE_OFFSET, 0)
    content[_SECTION_ENTRIES_OFFSET : _SECTION_ENTRIES_OFFSET + 4] = bytes(
        4
    )  # their number, and the index of the name section
    _replace(path, content[:end])
    return len(content) - end


def _replace(path: Path, content: bytearray) -> None:
    """Write a new file: an installer may have hard-linked this one to its cache and other installations."""
    draft = path.with_name(f"{path.name}.stripped")
    draft.write_bytes(content)
    shutil.copymode(path, draft)
    draft.replace(path)


def _segment_ends(content: bytearray) -> list[int]:
    (table,) = _NUMBER.unpack_from(content, _PROGRAM_TABLE_OFFSET)
    size, count = _PROGRAM_ENTRIES.unpack_from(content, _PROGRAM_ENTRIES_OFFSET)
    starts = (table + number * size for number in range(count))
    return [table + size * count, *(sum(struct.unpack_from("<Q16xQ", content, at + 8)) for at in starts)]
