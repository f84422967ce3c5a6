# predict and evaluate, as they are called.
load helpers

# A decision that is the value of feature 1.
two_class_model() {
  printf 'solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n1 \n' >model
}

@test "evaluate shows what is taken for what, and macro F1" {
  printf 'solver_type MCSVM_CS\nnr_class 3\nlabel 1 2 3\nnr_feature 3\nbias -1\nw\n1 0 0 \n0 1 0 \n0 0 1 \n' >model
  printf '1 1:1\n1 1:1\n1 2:1\n2 2:1\n3 3:1\n3 1:1\n' >data.svm
  run linblock evaluate model data.svm
  expect 0 "accuracy 66.67% (4 of 6)" "macro F1 66.67%"
  [ "$(tail -n 5 <<<"$output" | tr -s ' ')" = " predicted
 label 1 2 3
 1 2 1 0
 2 0 1 0
 3 1 0 1" ]
  run linblock evaluate model data.svm --json
  expect 0 '"macro_f1":0.6666' '"f1":' '{"label":3,"predicted":1,"rows":1}'
}

@test "evaluate shows no table of more than twenty classes" {
  two_class_model
  for label in $(seq 2 21); do echo "$label 1:1"; done >data.svm
  run linblock evaluate model data.svm
  expect 0 "accuracy 0"
  [[ "$output" != *"     predicted"* ]]
  head -n 19 data.svm >fewer.svm
  run linblock evaluate model fewer.svm
  [[ "$output" == *"     predicted"* ]]
}

# MODEL.json as linblock 0.1.0 wrote it: there it had what is in the model itself now.
old_json() {
  printf '{\n "program": "linblock 0.1.0",\n "index_base": 1, "normalized": false, "against_rest": false, "calibration": %s}\n' \
    "$1" >model.json
}

@test "an SVM has probabilities when it is calibrated" {
  two_class_model
  printf '1 1:2\n-1 1:0\n' >data.svm
  run linblock predict model data.svm --probability
  expect 2 "train with --loss logistic or with --calibrate"
  old_json '[[-0.5, 1]]'

  run linblock predict model data.svm --probability
  expect 0 "labels 1 -1" "1 0.5 0.5"
  run linblock evaluate model data.svm
  expect 0 "log-loss"
  old_json '[[1, 1], [2, 2]]'

  run linblock predict model data.svm
  expect 4 "model.json" "2 calibrations"
}

# Text without end, as fast as it is read or slowly, so that the signal finds the command at work or waiting.
fast() { yes "1$(seq -f ' %g:1' 1 200 | tr -d '\n')"; }
slow() { while echo "1 1:1" && sleep 0.05; do :; done; }

@test "Ctrl-C ends predict and evaluate with 130" {
  two_class_model
  mkfifo pipe
  for command in predict evaluate; do
    for text in fast slow; do
      $text >pipe 2>/dev/null &
      run timeout --foreground --preserve-status -s INT -k 20 0.5 "$LINBLOCK" $command model pipe
      wait $! || true
      expect 130 "interrupted"
    done
  done
}

@test "predict and evaluate hold their memory for compressed text with a large window" {
  two_class_model
  linblock generate documents -o some.svm --rows 20000 --nonzeros 50 -q
  xz -T1 --lzma2=preset=0,dict=64MiB -c some.svm >some.svm.xz
  for command in predict evaluate; do
    run linblock $command model some.svm.xz --memory 16M
    expect 6 "'some.svm.xz'" "to decompress"
    run linblock $command model some.svm.xz --memory 1G
    expect 0
  done
}

@test "evaluate says when rows have labels that the model does not know" {
  two_class_model
  printf '1 1:2\n0 1:-1\n0 1:-2\n' >data.svm
  run linblock evaluate model data.svm
  expect 0 "2 rows have a label that the model does not know, such as 0 (it knows 1, -1), and count as wrong"
  printf '1 1:2\n-1 1:-1\n' >data.svm
  run linblock evaluate model data.svm
  expect 0 "accuracy 100"
  [[ "$output" != *"does not know"* ]]
}

@test "the model comes first, and rows in its place are told from a damaged one" {
  two_class_model
  run linblock evaluate good.svm model
  expect 3 "'good.svm' is not a model: it begins with '1'" "is the model named first"
}
