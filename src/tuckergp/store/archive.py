"""ZIP files whose members are not compressed and begin at multiples of 64 bytes, so that they can be memory-mapped.

A member is either read whole and compared with its checksum, or mapped, shared with all other processes that map it,
and compared by the code that reads from the map. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tuckergp.store.tensors import ALIGNMENT, Place

__all__ = ["Archive", "Damage", "OtherVersion", "add_member"]

EPOCH = (1980, 1, 1, 0, 0, 0)
PIECE = 1 << 20
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
# Extra fields of a member: its sizes beyond 4 GiB, and zeros for alignment, in the field of Android's zipalign.
SIZES, PADDED = struct.Struct("<HHQQ"), struct.Struct("<HHH")
PADDING = 0xD935


class Damage(Exception):
    """An error that says what is wrong with a damaged file."""


class OtherVersion(Exception):
    """An error that says why this version cannot read an intact file; its text follows the name of the file."""


def add_member(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes | memoryview]) -> dict[str, int]:
    """Write a member piece by piece and return its size and checksum."""
    # the date is fixed, so that the same model is the same file
    member = zipfile.ZipInfo(name, EPOCH)
    header = LOCAL_HEADER.size + len(name.encode()) + SIZES.size + PADDED.size
    padding = -(archive.start_dir + header) % ALIGNMENT
    member.extra = PADDED.pack(PADDING, 2 + padding, ALIGNMENT) + bytes(padding)
    with archive.open(member, "w", force_zip64=True) as file:
        for piece in pieces:
            file.write(piece)
    return {"size": member.file_size, "crc32": member.CRC}


class Archive:
    """A ZIP file that is open for reading, with its members by name."""

    def __init__(self, file: BinaryIO) -> None:
        self.size = file.seek(0, os.SEEK_END)
        if self.size == 0:
            raise Damage("it is empty")
        self.members: dict[str, zipfile.ZipInfo] = {}
        self._file = file
        self._zip = zipfile.ZipFile(file)
        self._content: Any = None
        for member in self._zip.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise Damage(f"{member.filename} is compressed")
            if member.filename in self.members or member.header_offset + member.file_size > self.size:
                raise Damage("its members overlap")
            self.members[member.filename] = member

    def member(self, name: str) -> zipfile.ZipInfo:
        """The entry of a member; an error where the file lacks it."""
        if name not in self.members:
            raise Damage(f"it lacks {name}")
        return self.members[name]

    def read(self, name: str) -> bytearray:
        """The content of a member, compared with its checksum."""
        content = bytearray(self.member(name).file_size)
        view, done = memoryview(content), 0
        with self._zip.open(self.members[name]) as member:
            while piece := member.read(PIECE):
                view[done : done + len(piece)] = piece
                done += len(piece)
        if done != len(content):
            raise Damage(f"{name} is not whole")
        return content

    def head(self, name: str, size: int) -> bytes:
        """The first bytes of a member, without a comparison with its checksum."""
        self._file.seek(self._start(name))
        return self._file.read(min(size, self.members[name].file_size))

    def array(self, name: str, place: Place) -> npt.NDArray[Any]:
        """A read-only view of a tensor in the mapped file, not compared with its checksum; a copy if not aligned."""
        start = self._start(name) + place.start
        if self._content is None:
            self._content = _mapped(self._file)
        tensor: npt.NDArray[Any] = np.ndarray(place.shape, place.dtype, self._content, start)
        return tensor if tensor.flags.aligned else tensor.copy()

    def _start(self, name: str) -> int:
        """The offset at which the content of a member begins, behind its header of variable length."""
        member = self.member(name)
        self._file.seek(member.header_offset)
        head = self._file.read(LOCAL_HEADER.size)
        signature, _, flags, *_, name_length, extra_length = LOCAL_HEADER.unpack(head)
        start: int = member.header_offset + LOCAL_HEADER.size + name_length + extra_length
        named = self._file.read(name_length) == name.encode()
        if signature != b"PK\x03\x04" or flags & 1 or not named or start + member.file_size > self.size:
            raise Damage(f"{name} does not lie where it should")
        return start


def _mapped(file: BinaryIO) -> Any:
    """The content of a file, mapped into memory where the system supports it, else read."""
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        file.seek(0)
        return file.read()
