# What a command writes never takes the place of what a person might miss.
load helpers

kept() { [ "$(cat good.svm)" = "$before" ]; }

@test "no command writes over what it reads" {
  before=$(cat good.svm)
  linblock train good.svm -o model -q
  ln good.svm another-name.svm
  run linblock train good.svm -o good.svm
  expect 2 "--output: 'good.svm' is read by this command, and would be lost"
  kept
  run linblock train good.svm -o other --trace another-name.svm
  expect 2 "--trace: 'another-name.svm' is read by this command"
  kept
  run linblock predict model good.svm -o good.svm
  expect 2 "is read by this command"
  kept
  run linblock predict model good.svm -o model
  expect 2 "is read by this command"
  run linblock pack good.svm -o new.store --max-bad-rows 1 --rejects good.svm
  expect 2 "--rejects: 'good.svm' is read by this command"
  kept
  [ ! -e new.store ]
}

@test "a model takes the place of a model, and of nothing else" {
  before=$(cat good.svm)
  printf '1 1:1\n-1 1:2\n' >rows.svm
  run linblock train rows.svm -o good.svm
  expect 2 "'good.svm' exists and is no model, so it is not overwritten"
  kept
  linblock train rows.svm -o model -q
  run linblock train rows.svm -o model.json
  expect 2 "'model.json' ends as a file that linblock writes beside a model"
  linblock predict model rows.svm -o predicted
  linblock train rows.svm -o model -q
  : >empty
  linblock train rows.svm -o empty -q
}

@test "a trace takes the place of a trace, and of nothing else" {
  before=$(cat good.svm)
  printf '1 1:1\n-1 1:2\n' >rows.svm
  run linblock train rows.svm -o model --trace good.svm
  expect 2 "--trace: 'good.svm' exists and is no trace"
  kept
  linblock train rows.svm -o model --trace trace -q
  linblock train rows.svm -o model --trace trace -q
}
