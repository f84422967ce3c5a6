#!/usr/bin/env bats
# train --test tells how good the weights are after each pass, and changes nothing else.
load helpers

make_rows() {
  linblock generate documents -o train.svm --rows "${1:-30000}" --features 20000 --nonzeros 60 --classes "${2:-2}" -q
  linblock generate documents -o test.svm --rows 3000 --skip "${1:-30000}" --features 20000 --nonzeros 60 \
    --classes "${2:-2}" -q
  linblock pack train.svm -o train.store --codec none -q
}

# The same bytes with and without, in so much memory: same_model MEMORY TEST OPTIONS...
same_model() {
  linblock train train.store -o without --memory "$1" "${@:3}" -q
  run linblock train train.store -o with --memory "$1" --test "$2" "${@:3}"
  expect 0 "test accuracy"
  cmp without with || { echo "$*: another model with --test"; return 1; }
}

@test "--test does not change the model: rows read again in each pass" {
  make_rows
  for options in "--solver dual --loss hinge" "--solver dual --loss logistic" "--solver newton" \
    "--solver pegasos --loss hinge" "--solver average" "--solver subsample"; do
    same_model 16M test.svm $options --max-passes 3
  done
}

@test "--test does not change the model: columns, and an index" {
  make_rows 20000
  linblock transpose train.store -q
  linblock index train.store -q
  for options in "--solver primal" "--solver cmls" "--solver indexed --loss hinge"; do
    same_model 16M test.svm $options --max-passes 5
  done
}

@test "--test does not change the model: between too little memory and enough, one size after another" {
  make_rows 10000
  for memory in 12M 14M 16M 17M 18M 19M 20M 22M 24M 28M 64M; do
    same_model $memory test.svm --solver dual --loss hinge
    same_model $memory test.svm --solver newton
  done
}

@test "--test does not change the model: groups of classes, and compressed rows or a store to test on" {
  make_rows 8000 30
  linblock pack test.svm -o test.store -q
  gzip -k test.svm
  bzip2 -k test.svm
  xz -0 -k test.svm
  zstd -q -k --zstd=wlog=17 test.svm
  for test in test.svm test.svm.gz test.svm.bz2 test.svm.xz test.svm.zst test.store; do
    same_model 10M $test --max-passes 2
  done
  linblock train train.store -o grouped --memory 10M --test test.svm --max-passes 2 --json >report 2>said
  grep -q "groups of up to" said
  [ "$(jq .test.accuracy report)" = "$(linblock evaluate grouped test.svm --json -q | jq .accuracy)" ]
}

@test "test rows are read before training: what is wrong with them costs no training" {
  make_rows 2000
  { cat test.svm; echo '1:0.5 2:1'; } >unlabeled.svm
  run linblock train train.store -o m --test unlabeled.svm
  expect 3 "a row has no label"
  [[ "$output" != *"plan:"* ]]
  [ ! -e m.checkpoint ]
  { cat test.svm; echo '1 2:1 1:1'; } >unsorted.svm
  run linblock train train.store -o m --test unsorted.svm
  expect 3 "unsorted.svm:3001:"
  [ ! -e m.checkpoint ]
}

@test "the accuracy is that of evaluate" {
  make_rows 5000 4
  linblock train train.store -o m --test test.svm --json -q >report
  [ "$(jq .test.accuracy report)" = "$(linblock evaluate m test.svm --json -q | jq .accuracy)" ]
}

@test "a killed run resumes with its test rows, group by group" {
  make_rows 8000 30
  linblock train train.store -o whole --memory 10M --test test.svm --max-passes 2 --json -q >expected
  kills=0
  for attempt in $(seq 10 100); do  # each has a little more time than the one before
    status=0
    timeout -s KILL "$(awk "BEGIN {print $attempt / 200}")" "$LINBLOCK" train train.store -o m --memory 10M \
      --test test.svm --max-passes 2 --json -q --checkpoint-seconds 0.02 >found || status=$?
    [ $status -ne 0 ] || break
    [ $status -eq 137 ]
    kills=$((kills + 1))
  done
  [ $kills -gt 0 ]
  cmp whole m
  [ "$(jq -c .test expected)" = "$(jq -c .test found)" ]
  [ ! -e m.checkpoint ]
}
