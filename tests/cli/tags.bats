load helpers

@test "a day is appended once, and the tag says which rows it has" {
  linblock pack good.svm -o s --tag 2026-11-15 -q
  run linblock append s good.svm --tag 2026-11-16 --json
  expect 0 "appended 3 rows with the tag '2026-11-16'"
  linblock append s good.svm --json -q >plain.json
  jq -e '.segment == 3 and .first_row == 6 and (has("tag") | not)' plain.json
  linblock append s good.svm --tag 17 --json -q >append.json
  jq -e '.segment == 4 and .first_row == 9 and .tag == "17" and .rows == 3' append.json
  cp s/MANIFEST before
  run linblock append s good.svm --tag 2026-11-16 --json
  expect 3 "'s' already has 3 rows with the tag '2026-11-16'; nothing was appended" \
    "linblock remove s --tag 2026-11-16" '"kind":"input"'
  run linblock append s absent.svm --tag 2026-11-16
  expect 3 "already has 3 rows"
  cmp s/MANIFEST before
  run linblock info s
  expect 0 "tags        3" "2026-11-15 3 rows from 0 on" "2026-11-16 3 rows from 3 on" "17 3 rows from 9 on" \
    "format version 2"
  linblock info s --json | jq -e '.tags == [{"tag": "2026-11-15", "first_row": 0, "rows": 3},
    {"tag": "2026-11-16", "first_row": 3, "rows": 3}, {"tag": "17", "first_row": 9, "rows": 3}]'
  linblock verify s -q
}

@test "an append that was not finished can be repeated with its tag" {
  linblock pack good.svm -o s -q
  cp s/MANIFEST before
  printf '1 1:1\n1 3:0.5 2:1\n' >bad.svm
  run linblock append s bad.svm --tag monday
  expect 3 "bad.svm:2"
  LINBLOCK_HOOK=kill:rename:1 run "$LINBLOCK_HOOKED" append s good.svm --tag monday
  [ "$status" -ne 0 ]
  cmp s/MANIFEST before
  linblock append s good.svm --tag monday -q
  linblock info s --json | jq -e '.rows == 6 and (.tags | length) == 1'
}

@test "rows leave by their tag, and the tag is free again" {
  linblock pack good.svm -o s -q
  linblock append s good.svm --tag monday -q
  linblock append s good.svm --tag tuesday -q
  run linblock remove s --tag monday
  expect 0 "removed 3 rows" "segment 2 is gone" "no rows with the tag monday are left" "s: 6 rows are left"
  [ ! -e s/segment-000002.rows ]
  run linblock remove s --tag monday
  expect 3 "'s' has no rows with the tag 'monday': it has 'tuesday'; nothing was removed" "linblock info s"
  linblock append s good.svm --tag monday -q
  linblock compact s -q
  linblock remove s --tag tuesday --json -q >removed.json
  jq -e '.rows == 3 and .nonzeros == 5 and .tags == ["tuesday"] and .segments == [] and .rows_left == 6
    and .removed_rows == 3' removed.json
  linblock verify s -q
  linblock compact s -q
  linblock remove s --tag monday --json -q | jq -e '.rows == 3 and .removed_rows == 3'
  linblock unpack s | cmp - good.svm
  linblock info s --json | jq -e '.tags == []'
  run linblock info s
  expect 0 "format version 1"
  [[ "$output" != *tags* ]]
}

@test "rows leave by ranges, from the command line and from a file" {
  linblock generate documents -o big.svm --rows 500 -q
  linblock pack big.svm -o s -q
  linblock remove s --row-range 100-199 --row-range 0-0 --json -q | jq -e '.rows == 101 and .rows_left == 399'
  printf '1\n200-299 # a hundred\n' >ids
  linblock remove s --rows ids --json -q | jq -e '.rows == 101'
  linblock unpack s >left
  sed -n '3,100p;301,500p' big.svm | cmp - left
  run linblock remove s --row-range 100-200
  expect 3 "rows 100-200 are not in 's'; nothing was removed"
  run linblock remove s --row-range 300-200
  expect 2 "--row-range '300-200' is not row ids from FIRST-LAST, such as 100-200"
  run linblock remove s --rows 300-310
  expect 2 "--row-range 300-310"
  linblock verify s -q
}

@test "one way to name rows at a time" {
  linblock pack good.svm -o s --tag monday -q
  run linblock remove s
  expect 2 "which rows? Give --tag TAG, --segment N, --row-range FIRST-LAST or --rows FILE"
  run linblock remove s --tag monday --segment 1
  expect 2
  run linblock remove s --row-range 0-1 --rows ids
  expect 2
  run linblock remove s --tag monday
  expect 3 "all rows" "one row at least"
  for tag in "two words" "a/b" ""; do
    run linblock append s good.svm --tag "$tag"
    expect 2 "--tag '$tag' is not a tag: write 1 to 64 letters, digits"
  done
}

@test "a snapshot keeps a state of the store, and neither changes the other" {
  linblock pack good.svm -o s --tag monday -q
  linblock transpose s -q
  run linblock snapshot s before
  expect 0 "before: 3 rows" "files of s" "next: linblock verify before"
  linblock append s good.svm --tag tuesday -q
  linblock snapshot s after --json -q | jq -e '.snapshot == "after" and .rows == 6 and .files > 4'
  linblock remove before --row-range 0-0 -q
  linblock compact before -q
  linblock verify s -q
  linblock verify after -q
  linblock unpack before | diff - <(tail -n 2 good.svm)
  linblock unpack after | diff - <(cat good.svm good.svm)
  [ "$(linblock info s --json | jq .id)" = "$(linblock info after --json | jq .id)" ]
  run linblock snapshot s after
  expect 2 "'after' exists already"
  run linblock snapshot absent new
  expect 3 "'absent' does not exist"
  rm -r s
  mv after s
  linblock append s good.svm --tag wednesday -q
  linblock info s --json | jq -e '[.tags[].tag] == ["monday", "tuesday", "wednesday"]'
}

@test "a snapshot that was killed anywhere leaves the store whole, and the next one works" {
  linblock generate documents -o big.svm --rows 300 -q
  linblock pack big.svm -o s -q
  linblock append s good.svm -q
  linblock transpose s -q
  before=$(cd s && find . -type f ! -name LOCK -exec sha256sum {} + | sort)
  killed=0
  for call in $(seq 1 400); do
    LINBLOCK_HOOK=kill:any:$call run "$LINBLOCK_HOOKED" snapshot s new -q
    [ "$(cd s && find . -type f ! -name LOCK -exec sha256sum {} + | sort)" = "$before" ]
    if [ -e new ]; then
      linblock verify new -q
      rm -r new
    fi
    [ "$status" -ne 0 ] || break
    killed=$((killed + 1))
  done
  [ "$status" -eq 0 ]
  [ "$killed" -gt 30 ]
  [ ! -e new.partial ]
}
