# weights and diff, as they are called.
load helpers

model() { printf 'solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel %s\nnr_feature %s\nbias %s\nw\n%s\n' "$1" "$2" "$3" "$4" >"$5"; }

@test "weights shows the largest weights, by size" {
  model "1 -1" 4 -1 $'0.5\n-2\n0\n1.25' m
  run linblock weights m --top 2
  expect 0 "class 1 (above 0) against -1 (below 0): 3 of 4 weights are not 0"
  [ "$(tail -n 2 <<<"$output" | tr -s ' ')" = " 2 -2
 4 1.25" ]
}

@test "weights writes CSV, JSON and numpy's format, with the bias" {
  model "1 -1" 2 2 $'0.5\n-2\n0.125' m
  run linblock weights m --as csv
  [ "$output" = "class,feature,weight
1,bias,0.25
1,2,-2
1,1,0.5" ]
  [ "$(linblock weights m --as json | jq -c '.classes[0] | [.label, .bias, .nonzeros, .weights[0].feature]')" = "[1,0.25,2,2]" ]
  linblock weights m --as npy -o w.npy
  [ $(($(stat -c %s w.npy) % 64)) -eq 12 ]  # the header is aligned; three floats follow
  [ "$(tail -c 12 w.npy | od -An -t f4 | tr -s ' ')" = " 0.5 -2 0.125" ]
  [ "$(head -c 6 w.npy | tail -c 5)" = NUMPY ]
}

@test "weights has a part for each of several classes" {
  printf 'solver_type MCSVM_CS\nnr_class 3\nlabel 7 5 9\nnr_feature 2\nbias -1\nw\n1 0 3 \n0 2 -4 \n' >m
  [ "$(linblock weights m --top 1 --as csv | tr '\n' ' ')" = "class,feature,weight 7,1,1 5,2,2 9,2,-4 " ]
}

@test "weights refuses what has no meaning, before it writes" {
  model "1 -1" 2 -1 $'0.5\n-2' m
  run linblock weights m --as npy
  expect 2 "name a file with -o FILE"
  run linblock weights m --as npy -o w --top 3
  expect 2 "leave out --top"
  run linblock weights m -o m
  expect 2 "m"
  run linblock weights m --top 0
  expect 2 "--top" "from 1 to 1000000"
  [ ! -e w ]
}

@test "diff shows cosine, changes, and rows that get another label" {
  model "1 -1" 2 -1 $'1\n1' before
  model "1 -1" 3 -1 $'1\n-1\n0.5' after
  printf '1 1:1\n-1 2:1\n1 2:1\n1 3:1\n' >rows.svm
  run linblock diff before after rows.svm
  expect 0 "class 1: cosine 0.000000" "norm 1.41421 to 1.5" "3 of 4 rows get another label (75.00%)" "accuracy 50.00% to 75.00%"
  [ "$(sed -n 3p <<<"$output" | tr -s ' ')" = " 2 1 -1 -2" ]
  [ "$(linblock diff before after rows.svm --json | jq -c '[.labels.changed, .classes[0].changes[0].feature]')" = "[3,2]" ]
  run linblock diff before before
  expect 0 "cosine 1.000000" "no weight differs"
}

@test "diff finds the same classes in another order" {
  model "1 -1" 2 -1 $'1\n2' before
  model "-1 1" 2 -1 $'-1\n-2' after
  run linblock diff before after
  expect 0 "class 1: cosine 1.000000" "no weight differs"
  model "1 2" 2 -1 $'1\n2' others
  run linblock diff before others
  expect 3 "the models tell other classes apart: one has the labels 1, -1, the other 1, 2"
}

@test "a binary model is the same model, by every command" {
  linblock generate documents -o d.svm --rows 1000 --features 300 -q
  linblock train d.svm -o text -q
  linblock train d.svm -o binary --model-format binary -q
  [ "$(head -c 16 binary)" = linblock-model-b ]
  [ $(($(stat -c %s text) / $(stat -c %s binary))) -ge 3 ]
  [ "$(linblock predict text d.svm)" = "$(linblock predict binary d.svm)" ]
  [ "$(linblock evaluate text d.svm)" = "$(linblock evaluate binary d.svm)" ]
  run linblock diff text binary
  expect 0 "no weight differs"
  linblock convert binary -o again -q
  cmp text again
  run linblock train d.svm -o other --warm binary --solver newton
  expect 0 "starting from the weights of 'binary'"
  run linblock predict text d.svm -o binary
  expect 2 "binary"
  run linblock convert text -o text
  expect 2 "text"
  linblock train d.svm -o binary -q --fresh  # a model takes the place of a model, in whichever form
  cmp text binary
}
