"""Files of a store, read and written with right checksums (docs/format.md)."""
import json
import pathlib

import xxhash

MASK = (1 << 64) - 1


def read(store: pathlib.Path) -> dict:
    return json.loads((store / "MANIFEST").read_bytes().partition(b"\n")[2])


def write_body(store: pathlib.Path, body: bytes):
    version = 2 if any(key in body for key in (b'"label_names"', b'"tags"', b'"feature_names"')) else 1
    head = f"linblock-store {version} {xxhash.xxh3_64_hexdigest(body)} {len(body)}\n"
    (store / "MANIFEST").write_bytes(head.encode() + body)


def write(store: pathlib.Path, manifest: dict):
    body = (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode()
    write_body(store, body)


def checksum(data: bytes, seed: int = 0) -> int:
    return xxhash.xxh3_64_intdigest(data, seed=seed)


def mix(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK
    return word ^ word >> 31


def chunk_seed(seal: int, segment: int, chunk: int) -> int:
    return mix(mix(mix(mix(seal) ^ segment)) ^ chunk)


def seal_of(manifest: dict) -> int:
    return int(manifest["seal"], 16)


def hexadecimal(number: int) -> str:
    return f"{number:016x}"


def identity(store: pathlib.Path) -> str:
    return (store / "MANIFEST").read_bytes().split(b" ", 3)[2].decode()


ENTRY_BYTES = 40
PAGE = 4096


def directory_path(store: pathlib.Path, number: int) -> pathlib.Path:
    return store / f"segment-{number:06}.directory"


def rows_path(store: pathlib.Path, number: int) -> pathlib.Path:
    return store / f"segment-{number:06}.rows"


def chunk_places(directory: bytes) -> list[tuple[int, int]]:
    """Offset and padded size of every chunk; offsets follow from the sizes."""
    places, offset = [], PAGE
    for at in range(0, len(directory), ENTRY_BYTES):
        stored = int.from_bytes(directory[at + 16:at + 20], "little")
        padded = -(-stored // PAGE) * PAGE
        places.append((offset, padded))
        offset += padded
    return places


def reseal(store: pathlib.Path, manifest: dict):
    """All checksums of a store's files anew, from the chunks up, so that only the contents can be found wrong."""
    for segment in manifest["segments"]:
        number = segment["number"]
        directory = bytearray(directory_path(store, number).read_bytes())
        rows = rows_path(store, number).read_bytes()
        for chunk, (offset, padded) in enumerate(chunk_places(directory)):
            seed = chunk_seed(seal_of(manifest), number, chunk)
            sum_ = checksum(rows[offset:offset + padded], seed)
            directory[chunk * ENTRY_BYTES + 8:chunk * ENTRY_BYTES + 16] = sum_.to_bytes(8, "little")
        directory_path(store, number).write_bytes(directory)
        segment["directory_checksum"] = hexadecimal(checksum(bytes(directory)))
    manifest["features_checksum"] = hexadecimal(checksum((store / "FEATURES").read_bytes()))
    if manifest.get("removed", {}).get("rows"):
        removed = manifest["removed"]
        removed["checksum"] = hexadecimal(checksum((store / f"removed-{removed['number']:06}").read_bytes()))
    if "row_facts" in manifest:
        facts = manifest["row_facts"]
        facts["checksum"] = hexadecimal(checksum((store / f"rows-{facts['number']:06}").read_bytes()))
    for trees in manifest.get("forest", {}).get("files", []):
        reseal_forest(store, manifest, trees)
    write(store, manifest)


def forest_tables(data: bytes, trees: int, nodes: int) -> int:
    """Where the tables behind the bodies begin: each body's size is in the table of nodes."""
    at = 32
    while at < len(data):
        if len(data) - at >= 8 * trees + 16 * nodes:
            table = at + 8 * trees
            sizes = [int.from_bytes(data[table + 16 * n + 12:table + 16 * n + 16], "little") for n in range(nodes)]
            if 32 + sum(sizes) == at:
                return at
        at += 4
    raise ValueError("the tables of a forest file were not found")


def reseal_forest(store: pathlib.Path, manifest: dict, trees: dict):
    path = store / f"forest-{trees['number']:06}"
    data = bytearray(path.read_bytes())
    tables = forest_tables(data, trees["trees"], trees["nodes"])
    body, table = 32, tables + 8 * trees["trees"]
    for node in range(trees["nodes"]):
        at = table + 16 * node
        size = int.from_bytes(data[at + 12:at + 16], "little")
        sum_ = checksum(bytes(data[body:body + size]), chunk_seed(seal_of(manifest), trees["number"], node))
        data[at:at + 8] = sum_.to_bytes(8, "little")
        body += size
    path.write_bytes(data)
    trees["checksum"] = hexadecimal(checksum(bytes(data[:32] + data[tables:])))


def adopt(store: pathlib.Path):
    """Make columns and index fresh again for a row store with another identity."""
    rows = read(store)
    for name in ("columns", "index"):
        inner = store / name
        if not (inner / "MANIFEST").exists():
            continue
        manifest = read(inner)
        manifest["rows_id"] = identity(store)
        if "forest" in manifest:
            forest = manifest["forest"]
            forest["removed_checksum"] = rows.get("removed", {}).get("checksum", hexadecimal(0))
            forest["covered"] = [{"number": one["number"], "directory_checksum": one["directory_checksum"]}
                                 for one in rows["segments"]]
        write(inner, manifest)


SNAPSHOT_MAGIC = b"LBSNAP02"


def read_snapshot(path: pathlib.Path) -> list[tuple[bytes, bytes, bytes]]:
    """Names, types and arrays of a checkpoint or a state."""
    data, arrays, at = path.read_bytes(), [], len(SNAPSHOT_MAGIC)
    while at < len(data) - 8:
        name, size = int.from_bytes(data[at:at + 4], "little"), int.from_bytes(data[at + 8:at + 16], "little")
        kind = data[at + 4:at + 8].rstrip(b"\0")
        at += 16
        arrays.append((data[at:at + name], kind, data[at + name:at + name + size]))
        at += name + size
    return arrays


def write_snapshot(path: pathlib.Path, arrays, sizes=None):
    """`sizes` may claim others than the arrays have."""
    data = bytearray(SNAPSHOT_MAGIC)
    for place, (name, kind, array) in enumerate(arrays):
        claimed = (sizes or {}).get(place, len(array))
        data += len(name).to_bytes(4, "little") + kind.ljust(4, b"\0") + (claimed % (1 << 64)).to_bytes(8, "little")
        data += name + array
    path.write_bytes(data + checksum(bytes(data)).to_bytes(8, "little"))
