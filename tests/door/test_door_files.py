"""Tables, arrays and seals at the door."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elute._util.files import write_parquet, write_row_groups
from elute._util.npz import write_npz
from elute.door.arrays import read_arrays
from elute.door.fields import Damaged
from elute.door.seals import require_sealed, seal
from elute.door.tables import Ids, Integers, Real, check_columns, read_table
from elute.errors import EluteError


def test_columns_by_name_type_and_range() -> None:
    table = pa.table({"n": [0, 5], "x": [0.5, None], "id": ["a", "b"]})
    check_columns(table, {"n": Integers(most=5), "x": Real(0, unknown=True), "id": Ids()})
    for name, column, said in (
        ("m", Integers(), "no column 'm'"),
        ("n", Integers(most=4), "has 5, not 4 or less"),
        ("n", Integers(least=1), "has 0, not 1 or more"),
        ("n", Integers((pa.int32(),)), "holds int64, not int32"),
        ("x", Real(0), "empty or NaN in 1 rows"),
        ("x", Real(0.6, unknown=True), "has 0.5, not 0.6 or more"),
        ("id", Real(), "holds string"),
    ):
        with pytest.raises(Damaged, match=said):
            check_columns(table, {name: column})
    with pytest.raises(Damaged, match="more than one column 'n'"):
        check_columns(pa.table([[1], [2]], ["n", "n"]), {"n": Integers()})
    with pytest.raises(Damaged, match="infinite"):
        check_columns(pa.table({"x": [np.inf]}), {"x": Real()})
    with pytest.raises(Damaged, match="which no id is"):
        check_columns(pa.table({"id": [[1]]}), {"id": Ids()})


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"id": broken}), tmp_path / "it.parquet")
    with pytest.raises(EluteError, match="not UTF-8"):
        read_table(tmp_path / "it.parquet", {"id": Ids()}, "again")


@pytest.mark.parametrize("write", [write_parquet, lambda path, table: write_row_groups(path, [table, table])])
def test_a_flipped_bit_in_a_page_is_seen(tmp_path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    """Of the pages, which carry checksums, every one; the footer is for the seal."""
    path = tmp_path / "it.parquet"
    write(path, pa.table({"n": np.arange(20_000) * 7919 % 10_007}))
    data, chance = path.read_bytes(), random.Random(1)
    sound = pq.read_table(path)["n"].to_pylist()
    first = pq.read_metadata(path).row_group(0).column(0)
    start, end = first.dictionary_page_offset or first.data_page_offset, first.total_compressed_size
    unseen = 0
    for _ in range(60):
        flipped = bytearray(data)
        flipped[start + chance.randrange(end)] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            unseen += read_table(path, {"n": Integers()}, "again")["n"].to_pylist() != sound
        except EluteError:
            continue
    assert unseen == 0


def test_seals_tell_a_file_cut_short_or_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    write_parquet(file, pa.table({"n": [1, 2, 3]}))
    seals = seal(tmp_path, ["a.parquet", "absent.parquet"])
    assert list(seals) == ["a.parquet"]
    require_sealed(tmp_path, seals, "it.json", "again")
    require_sealed(tmp_path, None, "it.json", "again")
    data = file.read_bytes()
    file.write_bytes(data[:-5])
    with pytest.raises(EluteError, match="cut short, or belongs to another run; again"):
        require_sealed(tmp_path, seals, "it.json", "again")
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(EluteError, match=r"not the file that it.json was written with, or is damaged"):
        require_sealed(tmp_path, seals, "it.json", "again")
    file.unlink()
    with pytest.raises(EluteError, match="is missing"):
        require_sealed(tmp_path, seals, "it.json", "again")
    with pytest.raises(EluteError, match="is missing"):
        require_sealed(tmp_path, {"../x": {"bytes": 1, "crc32": 1}}, "it.json", "again")


def test_arrays_come_back(tmp_path: Path) -> None:
    path = tmp_path / "it.npz"
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "['x'].y": np.array(2, np.float32),
        "s": np.array("identity"),
        "none": np.zeros((0, 4), np.float32),
    }
    write_npz(path, arrays)
    found = read_arrays(path)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_are_not_made_before_they_are_known_to_be_there(tmp_path: Path) -> None:
    """A header that claims a petabyte, a compressed file, objects, and bytes that are none."""
    path = tmp_path / "it.npz"
    header = b"\x93NUMPY\x01\x00"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 100000000), }"
    text += b" " * (128 - 10 - len(text) - 1) + b"\n"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.npy", header + len(text).to_bytes(2, "little") + text)
    with pytest.raises(Damaged, match="does not hold what it says"):
        read_arrays(path)
    np.savez_compressed(path, a=np.zeros(10))
    with pytest.raises(Damaged, match="compressed"):
        read_arrays(path)
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(Damaged):
        read_arrays(path)
    for written in (b"", b"PK", b"x" * 500):
        path.write_bytes(written)
        with pytest.raises(Damaged):
            read_arrays(path)
    with pytest.raises(Damaged, match="no such file"):
        read_arrays(tmp_path / "absent.npz")


def test_a_flipped_bit_in_arrays_is_seen_or_harmless(tmp_path: Path) -> None:
    path, chance = tmp_path / "it.npz", random.Random(2)
    array = np.random.default_rng(1).random(50)
    write_npz(path, {"a": array})
    data = path.read_bytes()
    for _ in range(300):
        flipped = bytearray(data)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            found = read_arrays(path)
        except Damaged:
            continue
        for same in found.values():
            np.testing.assert_array_equal(same, array)
