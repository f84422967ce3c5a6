load helpers

many() { linblock generate clusters -o "$1" --rows "$2" --features 12 --skip "${3:-0}" -q; }

@test "index keeps an index beside the rows, and info tells its state" {
  linblock pack good.svm -o s -q
  run linblock info s
  expect 0 "index       absent" "linblock index s"
  run linblock index s --bias 1
  expect 0 "indexed 3 rows, 5 nonzeros, in 1 tree" "next: linblock train s --solver indexed"
  run linblock info s
  expect 0 "index       fresh: 1 trees" "bias 1"
  run linblock verify s
  expect 0 "s: 1 chunks, 3 rows" "s/index: 1 pages, 3 rows"
  run linblock index s
  expect 0 "fresh index" "nothing to do"
  run linblock index s --branch 8
  expect 0 "indexed 3 rows"
  [ "$(linblock info s --json | jq -c '[.index.state, .index.branch, .index.bias]')" = '["fresh",8,1]' ]
  run linblock index s --bias none --force --threads 1 --memory 32M
  expect 0 "indexed 3 rows"
  [ "$(linblock info s --json | jq .index.bias)" = -1 ]
}

@test "append adds trees for the new rows where the index was fresh" {
  many first.svm 3000
  many more.svm 500 3000
  linblock pack first.svm -o s -q
  linblock index s --tree-rows 1000 -q
  sum=$(cat s/index/segment-000001.rows s/index/forest-000001 | sha256sum)
  run linblock append s more.svm
  expect 0 "appended 500 rows" "the index has 1 new tree"
  [ "$(linblock info s --json | jq -r .index.state)" = fresh ]
  [ "$(linblock info s --json | jq .index.rows)" = 3500 ]
  [ "$(cat s/index/segment-000001.rows s/index/forest-000001 | sha256sum)" = "$sum" ]
  linblock verify s -q
}

@test "remove and compact make an index stale, and leave it where it is" {
  many first.svm 3000
  linblock pack first.svm -o s -q
  linblock index s -q
  echo 7 | linblock remove s --rows - -q
  run linblock info s
  expect 0 "index       stale" "linblock index s"
  linblock index s -q
  linblock compact s -q
  [ "$(linblock info s --json | jq -r .index.state)" = stale ]
  linblock append s first.svm -q
  [ "$(linblock info s --json | jq -r .index.state)" = stale ]
  linblock verify s -q
  linblock index s -q
  [ "$(linblock info s --json | jq -r .index.state)" = fresh ]
  linblock verify s -q
}

@test "index --json is one summary" {
  linblock pack good.svm -o s -q
  output=$(linblock index s --json 2>/dev/null)
  [ "$(jq -c '[.changed, .extended, .rows, .nonzeros, .trees]' <<<"$output")" = '[true,false,3,5,1]' ]
  [ "$(jq .bytes <<<"$output")" = "$(linblock info s --json | jq .index.bytes)" ]
  output=$(linblock index s --json 2>/dev/null)
  [ "$(jq -c '[.changed, .trees]' <<<"$output")" = '[false,1]' ]
}

@test "index says what is wrong and what to do" {
  run linblock index absent
  expect 3 "'absent' does not exist"
  linblock pack good.svm -o s -q
  run linblock index s --memory 1M
  expect 6 "--memory"
  run linblock index s --branch 1
  expect 2 "--branch '1'"
  run linblock index s --tree-rows 0
  expect 2 "--tree-rows '0'"
  run linblock index s --tree-rows 18446744073709551615
  expect 2 "--tree-rows '18446744073709551615'" "from 1 to 1000000000000"
  run linblock index s --page-bytes 1M
  expect 2 "--page-bytes"
  run linblock index s --bias -3
  expect 2 "--bias"
  [ ! -e s/index ]
  linblock index s -q
  run linblock index s/index
  expect 3 "holds the index of a store"
  run linblock train s/index -o model
  expect 3 "holds the index of a store"
}

@test "verify names a damaged index" {
  linblock pack good.svm -o s -q
  linblock index s -q
  printf X | dd of=s/index/forest-000001 bs=1 seek=40 conv=notrunc status=none
  run linblock verify s
  expect 4 "s/index/forest-000001"
}
