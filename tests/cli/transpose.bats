load helpers

@test "transpose keeps the columns beside the rows, and info tells their state" {
  linblock pack good.svm -o s -q
  run linblock info s
  expect 0 "columns     absent" "linblock transpose s"
  run linblock transpose s
  expect 0 "transposed 3 rows into 3 feature columns, 5 nonzeros" "next: linblock train s --solver primal"
  [ -f s/columns/MANIFEST ]
  run linblock info s
  expect 0 "columns     fresh: 3 features"
  run linblock verify s
  expect 0 "s: 1 chunks, 3 rows" "s/columns: 1 chunks, 3 columns"
  run linblock transpose s
  expect 0 "fresh columns" "nothing to do"
  [ -f s/columns/segment-000001.rows ]
  run linblock transpose s --force --codec zstd --threads 1 --memory 32M
  expect 0 "transposed 3 rows"
  [ -f s/columns/segment-000002.rows ]
  [ ! -e s/columns/segment-000001.rows ]
}

@test "append, remove and compact make columns stale, and leave them where they are" {
  linblock pack good.svm -o s -q
  linblock transpose s -q
  linblock append s good.svm -q
  run linblock info s
  expect 0 "columns     stale" "linblock transpose s"
  linblock transpose s -q
  echo 1 | linblock remove s --rows - -q
  [ "$(linblock info s --json | jq -r .columns.state)" = stale ]
  linblock transpose s -q
  linblock compact s -q
  [ "$(linblock info s --json | jq -r .columns.state)" = stale ]
  linblock verify s -q
  linblock transpose s -q
  [ "$(linblock info s --json | jq -r .columns.state)" = fresh ]
  linblock verify s -q
}

@test "transpose --json is one summary" {
  linblock pack good.svm -o s -q
  output=$(linblock transpose s --json 2>/dev/null)
  [ "$(jq -r '[.changed, .columns, .nonzeros, .spilled_bytes] | @text' <<<"$output")" = '[true,3,5,0]' ]
  [ "$(jq .bytes <<<"$output")" = "$(linblock info s --json | jq .columns.bytes)" ]
  output=$(linblock transpose s --json 2>/dev/null)
  [ "$(jq -r '[.changed, .columns] | @text' <<<"$output")" = '[false,3]' ]
}

@test "transpose says what is wrong and what to do" {
  run linblock transpose absent
  expect 3 "'absent' does not exist"
  linblock pack good.svm -o s -q
  run linblock transpose s --memory 1M
  expect 6 "--memory"
  run linblock transpose s --codec best
  expect 2 "best"
  [ ! -e s/columns ]
  linblock transpose s -q
  run linblock transpose s/columns
  expect 3 "holds the feature columns" "name that store"
  run linblock train s/columns -o m
  expect 3 "holds the feature columns"
  run linblock unpack s/columns
  expect 3 "holds the feature columns"
  printf x | dd of=s/columns/rows-000001 bs=1 seek=40 conv=notrunc status=none
  run linblock verify s
  expect 4 "rows-000001" "linblock transpose s --force"
}

@test "text that has changed is packed anew, columns or not" {
  linblock train good.svm -o m -q
  linblock transpose good.svm.linblock -q
  printf '1 1:1\n-1 2:1\n' >good.svm
  run linblock train good.svm -o m
  expect 0 "packing anew"
  [ ! -e good.svm.linblock/columns ]
}
