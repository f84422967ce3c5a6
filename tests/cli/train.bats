load helpers

make_data() {
  linblock generate documents -o train.svm --rows 2000 --features 500 --nonzeros 20 -q
  linblock generate documents -o test.svm --rows 500 --features 500 --nonzeros 20 -q --seed 1
}

@test "from text to a certified model, and its predictions" {
  make_data
  run linblock train train.svm -o model --loss hinge --test test.svm
  expect 0 "plan:" "converged: gap" "test accuracy" "next: linblock predict model"
  [ -d train.svm.linblock ]
  [ ! -e model.checkpoint ]
  linblock predict model test.svm -o predicted
  [ "$(wc -l <predicted)" -eq 500 ]
  run linblock evaluate model test.svm --json
  expect 0 '"accuracy":' '"auc":'
}

@test "gaps have three digits and are never below nothing" {
  make_data
  run linblock train train.svm -o model --tolerance 0.1 --json
  expect 0 "converged: gap" '"processor":'
  gap=$(grep -o '"certified_gap":[^,]*' <<<"$output" | cut -d: -f2)
  [[ "$output" == *"converged: gap $(awk "BEGIN {printf \"%.3g\", 100 * $gap}")% (tolerance 10%)"* ]]
  # The estimate is off by its rounding, which is more than this gap.
  for loss in hinge logistic; do
    run linblock train good.svm -o model --loss $loss --tolerance 1e-13 --max-passes 40 --fresh
    expect 0 "gap about" "converged: gap"
    [[ "$output" != *"about -"* ]]
  done
}

@test "text that has not changed is not packed again" {
  make_data
  linblock train train.svm -o model -q
  run linblock train train.svm -o model
  expect 0 "made from this text before"
  echo "1 1:1" >>train.svm
  run linblock train train.svm -o model
  expect 0 "packing anew"
}

@test "a killed run goes on to the same bits" {
  linblock generate documents -o train.svm --rows 20000 --features 5000 --nonzeros 40 -q
  linblock pack train.svm -o s -q --chunk-bytes 16K
  options="--loss hinge --tolerance 1e-5 --inner 1 --cost 10 -q"
  linblock train s -o whole $options
  for delay in 0.05 0.1 0.15 0.2 0.25; do
    timeout -s KILL $delay "$LINBLOCK" train s -o parts $options --checkpoint-seconds 0 || true
  done
  linblock train s -o parts $options
  cmp whole parts
}

@test "a checkpoint of other options is refused with what differs" {
  linblock generate documents -o train.svm --rows 20000 --features 5000 --nonzeros 40 -q
  linblock pack train.svm -o s -q --chunk-bytes 16K
  timeout -s INT 0.3 "$LINBLOCK" train s -o m --tolerance 1e-9 --cost 100 -q --checkpoint-seconds 0 || true
  [ -e m.checkpoint/STATE ]
  run linblock train s -o m --tolerance 1e-9 --cost 5 -q
  expect 2 "checkpoint of another run" "cost: 100 then, 5 now" "--fresh"
  run linblock train s -o m --cost 5 -q --fresh
  expect 0
}

@test "what cannot be trained is explained" {
  printf '1 1:1\n1 2:1\n' >one.svm
  run linblock train one.svm -o m
  expect 3 "two classes"
  printf '1 1:1\n2 2:1\n3 3:1\n' >three.svm
  run linblock train three.svm -o m
  expect 0 "3 tasks in the same pass"
  run linblock train three.svm -o m --positive 2
  expect 0
  run linblock train three.svm -o m --positive 9
  expect 3 "no row has this label"
  run linblock train three.svm -o m --loss huber
  expect 2 "--loss 'huber' is not hinge, squared-hinge, logistic or huber-hinge"
  run linblock train three.svm -o m --cost -1
  expect 2 "--cost"
}

@test "a damaged model is refused with exit code 4" {
  make_data
  linblock train train.svm -o model -q
  head -c 300 model >cut
  run linblock predict cut test.svm
  expect 4 "'cut' is not a usable model"
  sed 's/nr_feature .*/nr_feature 99999999999/' model >absurd
  run linblock predict absurd test.svm
  expect 4 "claims"
  sed 's/^[0-9.e-]* $/nonsense /' model >words
  run linblock predict words test.svm
  expect 4 "not a number"
}

@test "rows without labels are predicted, and not evaluated" {
  make_data
  linblock train train.svm -o model -q
  cut -d' ' -f2- test.svm >bare.svm
  linblock predict model bare.svm -o a
  linblock predict model test.svm -o b
  cmp a b
  run linblock evaluate model bare.svm
  expect 3 "has no label"
}

@test "batches are used where all rows stay in memory, and never cost a refusal" {
  linblock generate documents -o many.svm --rows 12000 --features 1000000 --nonzeros 110 -q
  linblock pack many.svm -o many.store -q
  run linblock train many.store -o model --dry-run --memory 1G
  expect 0 "batches"
  # The least in which it can be trained without them.
  run linblock train many.store -o model --dry-run --memory 4M
  expect 6 "Give --memory"
  least=$(grep -o 'Give --memory [0-9]*M' <<<"$output" | grep -o '[0-9]*M')
  run linblock train many.store -o model --dry-run --memory "$least"
  expect 0 "plan:"
  [[ "$output" != *"batches"* ]]
  run linblock train many.store -o model --dry-run --memory "$least" --batch 64
  expect 6 "batches 1"
}

@test "softmax of many classes and short rows stays within its memory" {
  [ -z "$LINBLOCK_SANITIZE" ] || skip "a sanitizer takes memory of its own"
  awk 'BEGIN { for (i = 0; i < 40000; ++i) print i * 7919 % 60, 1 + i * 104729 % 80 ":" (1 + i % 13) / 13 }' >many.svm
  for memory in 16 24; do
    linblock train many.svm -o m --multiclass softmax --memory ${memory}M --fresh --json -q >summary
    [ "$(jq .converged summary)" = true ]
    [ "$(jq .peak_memory_bytes summary)" -le $((memory << 20)) ]
  done
}
