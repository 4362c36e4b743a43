"""Moves the offsets in a checkpoint's record, as `docs/internals/state.md` describes it: state and offsets then do not belong together."""
import os
import struct

HEADER, FILE, TABLE = 24, 16, 45


def crc32c(data):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def move_offsets(state, by):
    """Adds to every split's offset in the newest record, and makes its checksum right again; false where that would be before its beginning in all."""
    moved = False
    newest = max((name for name in os.listdir(state) if name.startswith("checkpoint-") and name[11:].isdigit()), key=lambda name: int(name[11:]))
    with open(f"{state}/{newest}", "r+b") as file:
        content = bytearray(file.read())
        body = memoryview(content)[HEADER:]
        length, checksum = struct.unpack_from("<II", content, 12)
        assert length == len(body) and checksum == crc32c(body), "the record is not as docs/internals/state.md says"
        at = 8 + 16 + 8 + 4 + 4  # number, epoch and its time, position in the log of DML, workers, next table
        at = skip_list(body, at, FILE)
        at = skip_list(body, at, TABLE)
        (sources,) = struct.unpack_from("<I", body, at)
        at += 4
        for _ in range(sources):
            _, splits = struct.unpack_from("<II", body, at)
            at += 8
            for _ in range(splits):
                for _ in range(2):  # name, topic
                    at += 4 + struct.unpack_from("<I", body, at)[0]
                at += 4  # partition
                (offset,) = struct.unpack_from("<q", body, at)
                moved = moved or offset + by >= 0
                struct.pack_into("<q", body, at, max(0, offset + by))
                at += 8
        struct.pack_into("<I", content, 16, crc32c(body))
        if moved:
            file.seek(0)
            file.write(content)
    return moved


def skip_list(body, at, entry):
    return at + 4 + struct.unpack_from("<I", body, at)[0] * entry
