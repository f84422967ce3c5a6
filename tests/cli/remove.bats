load helpers

@test "rows leave a store by their ids, and compact makes it smaller" {
  linblock pack good.svm -o s -q
  linblock append s good.svm -q
  printf '# the second row\n1\n\n3\n' >ids
  run linblock remove s --rows ids
  expect 0 "removed 2 rows, 4 nonzeros" "s: 4 rows are left" "next: linblock compact s"
  run linblock info s
  expect 0 "rows        4" "removed     2 rows" "nonzeros    6"
  linblock verify s -q
  sed -n '1p;3p' good.svm >want
  sed -n '2,3p' good.svm >>want
  linblock unpack s | cmp - want
  run linblock compact s
  expect 0 "compacted 2 segments with 2 removed rows into one" "next: linblock info s"
  linblock verify s -q
  linblock unpack s | cmp - want
  run linblock info s
  expect 0 "rows        4" "segments    1"
  [[ "$output" != *removed* ]]
  run linblock compact s
  expect 0 "nothing to do"
  echo 4 | linblock remove s --rows - -q
  [ "$(linblock unpack s | wc -l)" -eq 3 ]
}

@test "a segment leaves a store with its files" {
  linblock pack good.svm -o s -q
  linblock append s good.svm -q
  run linblock remove s --segment 1
  expect 0 "removed 3 rows" "3 rows are left" "next: linblock info s"
  [ ! -e s/segment-000001.rows ]
  linblock unpack s | cmp - good.svm
  run linblock remove s --segment 1
  expect 3 "'s' has no segment 1" "linblock info s"
  run linblock remove s --segment 2
  expect 3 "all rows" "one row at least"
  linblock verify s -q
}

@test "a list with a mistake is refused with its line, and nothing is removed" {
  linblock pack good.svm -o s -q
  cp s/MANIFEST before
  printf '0\n3\n' >ids
  run linblock remove s --rows ids
  expect 3 "ids:2:1: row 3 is not in 's'" "nothing was removed"
  printf '0\nzero\n' >ids
  run linblock remove s --rows ids
  expect 3 "ids:2:1: 'zero' is not a row id"
  printf '0\n0\n' >ids
  run linblock remove s --rows ids
  expect 3 "ids:2:1: row 0 is listed twice"
  run linblock remove s --rows absent
  expect 3 "'absent' does not exist"
  cmp s/MANIFEST before
  echo 0 >ids
  linblock remove s --rows ids -q
  run linblock remove s --rows ids
  expect 3 "ids:1:1: row 0 was removed"
}

@test "remove must be told what, and of one kind" {
  linblock pack good.svm -o s -q
  run linblock remove s
  expect 2 "--segment N, --row-range FIRST-LAST or --rows FILE"
  run linblock remove s --segment last
  expect 2 "--segment 'last' is not a whole number from 0"
  run linblock remove s --segment 1 --rows ids
  expect 2 "--segment" "--rows"
  run linblock remove s --segment one
  expect 2 "--segment"
  run linblock remove absent --segment 1
  expect 3 "'absent' does not exist"
  run linblock compact absent
  expect 3 "'absent' does not exist"
}

@test "remove, compact and info as JSON" {
  linblock pack good.svm -o s -q
  echo 1 | linblock remove s --rows - -q --json >removed.json
  linblock info s --json >info.json
  linblock compact s -q --json >compacted.json
  linblock compact s -q --json >again.json
  python3 -c '
import json
removed, info, compacted, again = (json.load(open(name + ".json")) for name in "removed info compacted again".split())
assert (removed["rows"], removed["nonzeros"], removed["rows_left"], removed["removed_rows"]) == (1, 2, 2, 1), removed
assert (info["rows"], info["nonzeros"], info["removed_rows"], info["labels"]) == (2, 3, 1, {"1": 2}), info
assert compacted["changed"] and compacted["removed_rows"] == 1 and compacted["segments_before"] == 1, compacted
assert not again["changed"] and again["bytes"] == compacted["bytes"], again'
}

@test "a damaged list of removed rows is named, and exit code 4" {
  linblock pack good.svm -o s -q
  echo 1 | linblock remove s --rows - -q
  printf '\377' | dd of=s/removed-000001 bs=1 seek=33 conv=notrunc status=none
  run linblock info s
  expect 4 "removed-000001" "checksum does not match"
  rm s/removed-000001
  run linblock verify s
  expect 4 "removed-000001" "missing"
}

@test "training, predicting and evaluating do without removed rows" {
  linblock generate documents -o d.svm --rows 2000 --features 500 -q
  linblock pack d.svm -o all -q --seed 3
  seq 0 2 1999 | linblock remove all --rows - -q
  sed -n '2~2p' d.svm >half.svm
  linblock pack half.svm -o half -q --seed 3
  linblock train half -o half.model -q --tolerance 1e-4 --json >half.json
  linblock train all -o all.model -q --tolerance 1e-4 --json >all.json
  linblock evaluate half.model all --json >on-all.json
  linblock evaluate half.model half --json >on-half.json
  cmp on-all.json on-half.json
  linblock predict half.model all -q | cmp - <(linblock predict half.model half -q)
  python3 -c '
import json
half, all = (json.load(open(name + ".json")) for name in ("half", "all"))
assert half["rows"] == all["rows"] == 1000, (half["rows"], all["rows"])
assert abs(half["primal"] - all["primal"]) < 3e-4 * half["primal"], (half["primal"], all["primal"])'
}
