# What a person reads: each line says what it is about, and what to do next works.
load helpers

@test "the memory that a refusal names is enough, and it says what takes it" {
  linblock generate documents -o wide.svm --rows 300 --features 3000000 --nonzeros 20 -q
  linblock pack wide.svm -o wide.store -q
  linblock transpose wide.store -q
  while IFS='|' read -r words options; do
    run linblock train wide.store -o model --memory 16M --max-passes 1 $options
    expect 6 "--memory allows 16 MB" "$words"
    memory=$(grep -o 'ive --memory [0-9]*M' <<<"$output" | grep -o '[0-9]*M')
    linblock train wide.store -o model --memory "$memory" --max-passes 1 $options -q
    [[ "$output" != *"--chunk-bytes"* ]]
  done <<END
The largest part: weights.|
or use fewer features|
or use --solver dual|--solver newton
or use --solver newton or dual|--solver primal
or use --multiclass one-vs-rest|--multiclass crammer-singer
END
  linblock pack good.svm -o good.store -q
  run linblock train good.store -o model --memory 1M
  expect 6 "The largest part: the program itself. Give --memory" "or more"
  linblock pack good.svm -o large.store -q --chunk-bytes 8M --memory 1G
  run linblock append large.store good.svm --memory 17M
  expect 6 "Give --memory"
  memory=$(grep -o 'Give --memory [0-9]*M' <<<"$output" | grep -o '[0-9]*M')
  linblock append large.store good.svm --memory "$memory" -q
}

@test "with several classes each line says of which its numbers are" {
  linblock generate documents -o four.svm --rows 600 --features 200 --nonzeros 20 --classes 4 -q
  run linblock train four.svm -o model
  expect 0 "pass   1  sum of 4 objectives " ", largest gap " "  certified up to " "4 of 4 done" \
    "certified within " "of the best possible objective, each of 4 classifiers; "
  run linblock train four.svm -o model --positive 1
  expect 0 "pass   1  objective " ", gap " "of the best possible objective; "
  [[ "$output" != *"classifiers"* ]]
  run linblock train four.svm -o model --solver pegasos --loss hinge --max-passes 2
  expect 0 "largest gap not known" "(the sum of 4 classifiers), not certified"
  for options in "--truncate 1" "--solver indexed --loss hinge"; do
    run linblock train four.svm -o model $options
    expect 0 "sum of 4 truncated objectives" "(the sum of 4 classifiers)" "each of 4 classifiers"
    last=$(grep -o 'sum of 4 truncated objectives [0-9.]*' <<<"$output" | tail -n 1)
    [[ "$output" == *"truncated objective ${last##* } (the sum"* ]]
  done
}

@test "progress says nothing of bytes where none are read" {
  linblock pack good.svm -o s -q
  script -qec "'$LINBLOCK' train s -o model --solver pegasos --loss hinge --max-passes 100000000 --max-seconds 2" \
    /dev/null >shown </dev/null
  grep -q "rows/s from memory" shown
  ! grep -q "bytes/s" shown
  ! grep -q " 0 s left" shown
}

@test "training begins with the data, the solver and why, whatever chose it" {
  linblock pack good.svm -o s -q
  while IFS=: read -r words options; do
    run linblock train s -o model $options
    expect 0
    [ "${lines[0]}" = "squared-hinge, 3 rows x 3 features: $words" ]
  done <<END
dual, because features are many:
dual, because --keep-state keeps duals:--keep-state
dual, because --warm goes on from duals:--warm model --keep-state
dual, because --inner is for it:--inner 2
dual:--solver dual --keep-state
newton:--solver newton
END
}

@test "what is no store, no file of ids and no svmlight text is recognised" {
  linblock pack good.svm -o s -q
  linblock train s -o model -q
  run linblock info model
  expect 3 "'model' is a model, and info is about stores: model.json has" "'linblock evaluate model DATA.svm'"
  run linblock info good.svm
  expect 3 "'linblock pack good.svm -o good.svm.store'"
  run linblock remove s --rows 1
  expect 2 "--rows '1' is no file with one row id a line" "printf '%s\n' 1 | linblock remove s --rows -"
  run linblock remove s --rows 0-1
  expect 2 "'seq 0 1 | linblock remove s --rows -'"
  run linblock remove s --rows absent
  expect 3 "'absent' does not exist"
  echo 1 >7
  linblock remove s --rows 7 -q
  printf 'label,a,b\n1,0.5,0\n-1,0,2\n' >table.csv
  run linblock pack table.csv -o t
  expect 3 "table.csv:1:1: the label 'label,a,b' is not a number: is this CSV?" "the help of 'linblock pack'"
  printf '1 0.5 2\n' >table.txt
  run linblock pack table.txt -o t
  expect 3 "is this a table of numbers?" "The help of 'linblock pack'"
  printf 'spam 1:1\n' >words.svm
  run linblock pack words.svm -o t
  expect 3 "the label 'spam' is not a number: labels are whole numbers"
  # The command of the help converts the table.
  linblock pack --help | sed -n '/awk/,/print/p' | sed "s/data.csv | .*/table.csv/" >convert
  [ "$(sh convert)" = "$(printf '1 1:0.5\n-1 2:2')" ]
}

@test "predict and evaluate say that they take stores, and do" {
  linblock pack good.svm -o s -q
  linblock train s -o model -q
  for command in predict evaluate; do
    run linblock $command --help
    expect 0 "or one store" "linblock $command model test.store"
    [ "$(linblock $command model s)" = "$(linblock $command model good.svm)" ]
  done
}
