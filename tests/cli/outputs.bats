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

@test "a named pipe whose reader has gone ends the command" {
  linblock generate documents -o d.svm --rows 3000 -q
  linblock train d.svm -o m -q
  mkfifo pipe
  for command in "predict m d.svm --scores" "unpack d.svm.linblock" "weights m --top 100000 --as csv"; do
    head -c 10 pipe >/dev/null &
    run timeout -k 2 10 "$LINBLOCK" $command -o pipe
    wait $! || true
    [ "$status" -ne 137 ] && [ "$status" -ne 124 ]
  done
}

@test "convert takes the place of a model as a whole, with its lock" {
  linblock train good.svm -o m --keep-state -q --solver dual
  linblock train good.svm -o other --cost 3 -q
  linblock convert other -o m -q
  [ ! -e m.state ]
  exec 9>m.lock; flock 9
  run linblock convert other -o m
  [ "$status" -eq 5 ]
}

@test "a refusal during training leaves no checkpoint that stands in the way of its remedy" {
  printf '1\n2\n1\n3\n' >e.svm
  run linblock train e.svm -o em --free-bias --truncate 1
  [ "$status" -ne 0 ]
  linblock train e.svm -o em --truncate 1 -q
}
