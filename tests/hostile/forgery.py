"""Small lies in files: numbers that are just wrong, far too large, or of another type."""
import json
import struct

import manifests

DELETED = object()
OTHER_TYPES = [None, "12", "", [], [1], {}, True, 1.5, -1, -1.5, 1e300]


def numbers_near(x: int) -> list[int]:
    return [0, 1, x + 1, x - 1, 2 * x, x + 2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, x + 2**32, 2**40, 2**60,
            x + 2**61, 2**62, x + 2**62, 2**63 - 1, 2**63, x + 2**63, 2**64 - 1, 2**64 - x, x * 2**32]


def leaves(value, path=()):
    """Paths of all values in nested JSON that are no folders of values."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path


def value_at(value, path):
    for key in path:
        value = value[key]
    return value


def forge_json(random, value) -> str:
    """Change one leaf in place; what was done, for people."""
    paths = list(leaves(value))
    path = random.choice(numeric_first(random, value, paths))
    parent = value_at(value, path[:-1])
    old = parent[path[-1]]
    new = other_value(random, path[-1], old)
    if new is DELETED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = new
    return f"{'.'.join(map(str, path))}: {json.dumps(old)} -> {'deleted' if new is DELETED else json.dumps(new)}"


def numeric_first(random, value, paths):
    """Numbers are what is worth forging, in three of four cases."""
    numeric = [path for path in paths if type(value_at(value, path)) in (int, float)]
    return numeric if numeric and random.random() < 0.75 else paths


def other_value(random, key, old):
    roll = random.random()
    if roll < 0.06:
        return DELETED
    if roll < 0.2:
        return random.choice(OTHER_TYPES)
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return random.choice(numbers_near(old))
    if isinstance(old, float):
        return random.choice([0.0, -old, old * 1e300, 1e308, -1e308, 1e-320, 2.0**64, old + 1])
    if key == "labels":
        return random.choice(["", "1:1", f"{old} 7:0", f"{old} 7:{2**63}", "1:18446744073709551615 2:601",
                              old.replace(":", ":1"), old + " ", "x", " ".join(f"{n}:1" for n in range(70000))])
    if key == "codec":
        return random.choice(["lz4", "zstd", "zlib", "none ", "auto"])
    if key == "axis":
        return random.choice(["rows", "features", "forest", ""])
    if isinstance(old, str) and len(old) == 16:
        return manifests.hexadecimal(random.getrandbits(64))
    return "x" * random.choice([1, 300, 70000])


def forge_words(random, data: bytes, begin=0, end=None) -> bytes:
    """Change one to four bytes, 32-bit or 64-bit numbers, or floats."""
    forged = bytearray(data)
    end = len(data) if end is None else end
    for _ in range(random.choice([1, 1, 2, 4])):
        width = random.choice([1, 4, 4, 8])
        if end - begin < width:
            continue
        at = begin + random.randrange((end - begin) // width) * width
        old = int.from_bytes(forged[at:at + width], "little")
        new = random.choice(numbers_near(old) + [old ^ 1 << random.randrange(8 * width)])
        if width >= 4 and random.random() < 0.2:
            kind = "<f" if width == 4 else "<d"
            new = int.from_bytes(struct.pack(kind, random.choice([float("nan"), float("inf"), -1.0, 1e30, -0.0])),
                                 "little")
        forged[at:at + width] = (new % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(forged)


def all_lies(store) -> list:
    """Every number of the store's three manifests, with every value near it and of another type."""
    lies = []
    for name in ("", "columns", "index"):
        manifest = manifests.read(store / name)
        for path in leaves(manifest):
            old = value_at(manifest, path)
            if type(old) is int:
                lies += [(name, path, new) for new in numbers_near(old) + OTHER_TYPES]
    return lies


def forge_manifest(store, lie) -> str:
    name, path, new = lie
    manifest = manifests.read(store / name)
    old = value_at(manifest, path)
    value_at(manifest, path[:-1])[path[-1]] = new
    manifests.write(store / name, manifest)
    adopt_if_possible(store, name)
    return f"{name or 'rows'} {'.'.join(map(str, path))}: {json.dumps(old)} -> {json.dumps(new)}"


def adopt_if_possible(store, name):
    """Columns and index stay fresh, so that commands go on to read what was forged."""
    if name == "":
        try:
            manifests.adopt(store)
        except (KeyError, TypeError, AttributeError):
            pass  # nothing can be made of the forged manifest, and nobody reads further


def forge_store(random, store) -> str:
    """One lie in a store or in a store inside it, all checksums right again; what was done, for people."""
    name = random.choice(["", "", "columns", "index"])
    inner = store / name
    manifest = manifests.read(inner)
    kind = random.choice(["manifest", "directory", "directory", "chunk", "chunk", "chunk", "side file", "side file"])
    if kind == "manifest":
        said = forge_json(random, manifest)
        manifests.write(inner, manifest)
    else:
        segment = random.choice(manifest["segments"])["number"]
        if kind == "directory":
            said = forge_entry(random, manifests.directory_path(inner, segment))
            reseal_directory(inner, manifest)
        else:
            said = forge_chunk(random, inner, segment) if kind == "chunk" else forge_side_file(random, inner, manifest)
            manifests.reseal(inner, manifest)
    adopt_if_possible(store, name)
    return f"{name or 'rows'} {kind}: {said}"


def forge_entry(random, path) -> str:
    """A field of a directory entry, but not the chunk's checksum."""
    directory = bytearray(path.read_bytes())
    entry = random.randrange(len(directory) // manifests.ENTRY_BYTES) * manifests.ENTRY_BYTES
    field, width = random.choice([(0, 8), (16, 4), (20, 4), (24, 4), (28, 4), (32, 4), (36, 4)])
    old = int.from_bytes(directory[entry + field:entry + field + width], "little")
    new = random.choice(numbers_near(old)) % (1 << 8 * width)
    directory[entry + field:entry + field + width] = new.to_bytes(width, "little")
    if random.random() < 0.1:
        directory = directory[:random.randrange(len(directory))]
    path.write_bytes(directory)
    return f"entry {entry // manifests.ENTRY_BYTES}, byte {field}: {old} -> {new}"


def reseal_directory(store, manifest):
    for segment in manifest["segments"]:
        data = manifests.directory_path(store, segment["number"]).read_bytes()
        segment["directory_checksum"] = manifests.hexadecimal(manifests.checksum(data))
    manifests.write(store, manifest)


def forge_chunk(random, store, segment) -> str:
    """Bytes of a chunk, half of the time in its header and section table."""
    places = manifests.chunk_places(manifests.directory_path(store, segment).read_bytes())
    chunk = random.randrange(len(places))
    offset, padded = places[chunk]
    path = manifests.rows_path(store, segment)
    data = path.read_bytes()
    end = offset + (80 if random.random() < 0.5 else padded)
    path.write_bytes(forge_words(random, data, offset, end))
    return f"segment {segment}, chunk {chunk}"


def forge_side_file(random, store, manifest) -> str:
    """FEATURES, removed-N, rows-N or forest-N."""
    path = random.choice(sorted(path for path in store.iterdir()
                                if path.name == "FEATURES" or path.name.startswith(("removed-", "rows-", "forest-"))))
    data = path.read_bytes()
    if random.random() < 0.1 and not path.name.startswith("forest-"):
        forged = data[:random.randrange(len(data))] if random.random() < 0.5 else data + bytes(random.randrange(1, 99))
    else:
        forged = forge_words(random, data)
    if path.name.startswith("forest-") and not has_tables(forged, path, manifest):
        forged = data  # its checksums could not be made right again
    path.write_bytes(forged)
    return path.name


def has_tables(forged, path, manifest) -> bool:
    trees = next(one for one in manifest["forest"]["files"] if path.name == f"forest-{one['number']:06}")
    try:
        manifests.forest_tables(forged, trees["trees"], trees["nodes"])
        return True
    except ValueError:
        return False


TYPES = [b"f64", b"f32", b"u64", b"u32", b"u16", b"u8", b"i64", b"i32", b"bool", b"text", b"f16"]


def forge_snapshot(random, path) -> str:
    """An array of a checkpoint or a state: other contents, another size or type, gone, or one that nobody knows."""
    arrays, sizes = manifests.read_snapshot(path), {}
    place = random.choice([i for i, (name, _, array) in enumerate(arrays) if array and name != b"identity"])
    name, kind, array = arrays[place]
    lie = random.choice(["contents"] * 5 + ["shorter", "longer", "gone", "claimed", "empty", "twice", "type", "unknown"])
    if lie == "contents":
        arrays[place] = (name, kind, forge_words(random, array))
    elif lie == "shorter":
        arrays[place] = (name, kind, array[:-random.choice([1, 4, 8, 16])])
    elif lie == "longer":
        arrays[place] = (name, kind, array + random.choice([array, bytes(1), bytes(8), bytes(1 << 16)]))
    elif lie == "gone":
        del arrays[place]
    elif lie == "claimed":
        sizes[place] = random.choice(numbers_near(len(array)))
    elif lie == "empty":
        arrays[place] = (name, kind, b"")
    elif lie == "type":
        arrays[place] = (name, random.choice(TYPES), array)
    elif lie == "unknown":
        arrays.append((name + b".more", kind, array))
    else:
        arrays.append((name, kind, array + array))
    manifests.write_snapshot(path, arrays, sizes)
    return f"{path.name}: '{name.decode()}' {lie}"
