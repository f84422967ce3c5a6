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
    "converged: gap at most " "% for each of 4 classifiers (tolerance 1%); "
  run linblock train four.svm -o model --positive 1
  expect 0 "pass   1  objective " ", gap " "% (tolerance 1%); "
  [[ "$output" != *"classifiers"* ]]
  run linblock train four.svm -o model --solver pegasos --loss hinge --max-passes 2
  expect 0 "largest gap not known" "not converged: pegasos computes no bound; objective " " (the sum of 4 classifiers), stopped by --max-passes"
  for options in "--truncate 1" "--solver indexed --loss hinge"; do
    run linblock train four.svm -o model $options
    expect 0 "sum of 4 truncated objectives" "(the sum of 4 classifiers)" "for each of 4 classifiers"
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
dual, because rows are few for each feature:
dual, because --keep-state keeps duals:--keep-state
dual, because --warm starts from dual variables:--warm model --keep-state
dual, because --inner is for it:--inner 2
dual:--solver dual --keep-state
newton:--solver newton
END
}

@test "what is no store, no file of ids and no svmlight text is recognized" {
  linblock pack good.svm -o s -q
  linblock train s -o model -q
  run linblock info model
  expect 3 "'model' is a model, and info is about stores: model.json has" "'linblock evaluate model DATA.svm'"
  run linblock info good.svm
  expect 3 "'linblock pack good.svm -o good.svm.store'"
  run linblock remove s --rows 1
  expect 2 "--rows '1' is no file with one row id a line" "printf '%s\n' 1 | linblock remove s --rows -"
  run linblock remove s --rows 0-1
  expect 2 "--rows '0-1' is no file: '--row-range 0-1' removes the rows with these ids"
  run linblock remove s --rows 0:1
  expect 2 "'seq 0 1 | linblock remove s --rows -'"
  run linblock remove s --rows 1,0-1
  expect 2 "'printf '%s\n' 1 0-1 | linblock remove s --rows -'"
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
  printf '1 1:1\nspam 1:1\n' >words.svm
  run linblock pack words.svm -o t
  expect 3 "the label 'spam' is not a number: labels are all numbers or all words" "sed 's/^spam /1 /'"
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

@test "a run says first whether it converged, and what helps" {
  linblock generate documents -o d.svm --rows 2000 --features 500 --nonzeros 20 --noise 0.2 -q
  run linblock train d.svm -o m
  expect 0 "converged: gap " "% (tolerance 1%); "
  [[ "$output" != *"not converged"* && "$output" != *"to converge: "* ]]
  run linblock train d.svm -o m --solver dual --max-passes 1 --tolerance 1e-6 --cost 100
  expect 0 "not converged: gap " "% (tolerance 0.0001%), stopped by --max-passes; 1 pass, " \
    "to converge: raise --max-passes, or leave out --solver"
  run linblock train d.svm -o m --max-passes 1 --tolerance 1e-6 --cost 100
  expect 0 "to converge: raise --max-passes, or lower --cost (now 100)"
  run linblock train d.svm -o m --tolerance 1e-300 --solver newton
  expect 0 "not converged: gap " ": no further decrease is possible in double precision; " \
    "to converge: raise --tolerance (now 1e-300)"
  for solver in average "subsample --share 0.2"; do
    run linblock train d.svm -o m --solver $solver --tolerance 1e-5
    expect 0 "not converged: gap " ": ${solver%% *} does not aim at a tolerance; " "to converge: leave out --solver"
    [[ "$output" != *"--max-passes"* ]]
    jq -e '.converged == false and .certified_gap > 0' m.json
  done
}

@test "--require-converged ends with 7, and the model and the numbers are there" {
  linblock generate documents -o d.svm --rows 2000 --features 500 --nonzeros 20 --noise 0.2 -q
  hard="--require-converged --solver dual --max-passes 1 --tolerance 1e-6 --cost 100"
  run linblock train d.svm -o m $hard
  expect 7 "error: --require-converged: not converged: gap " "Raise --max-passes, or leave out --solver."
  linblock predict m d.svm -o labels -q
  linblock train d.svm -o m $hard --json -q >j 2>error || [ $? -eq 7 ]
  jq -e '.converged == false and .termination == "pass_limit" and .certified_gap > 1e-6 and (has("certified") | not)' j
  run linblock cv d.svm $hard
  expect 7 "mean      accuracy " "--require-converged: not converged"
  run linblock tune d.svm --costs 1,100 ${hard% --cost 100}
  expect 7 "the best cost is " "--require-converged: not converged"
  for command in "train d.svm -o m" "cv d.svm" "tune d.svm --costs 0.1,1"; do
    run linblock $command --require-converged
    expect 0 "converged: gap "
  done
}

@test "the gap of several classes is one number everywhere" {
  linblock generate documents -o four.svm --rows 600 --features 200 --nonzeros 20 --classes 4 -q
  run linblock train four.svm -o model --json --trace t
  expect 0 "converged: gap at most "
  jq -s -e '(map(select(.certified_gap))) as $all | ($all | length) == 3 and ($all | map(.certified_gap) | unique | length) == 1' \
    <(grep '^{' <<<"$output") model.json <(tail -n 1 t)
  gap=$(jq .certified_gap model.json)
  [[ "$output" == *"converged: gap at most $(awk "BEGIN {g = 100 * $gap; printf (g >= 0.1 ? \"%.2f\" : \"%.3g\"), g}")% for each"* ]]
  [ "$(jq '[.tasks[].certified_gap] | max' model.json)" = "$gap" ]
}

@test "a model that is no better than the most frequent label is named" {
  for i in $(seq 200); do echo "$((i % 20 == 0 ? 1 : -1)) 1:1 2:$((i % 7))"; done >rare.svm
  run linblock train rare.svm -o m --cost 1e-6 --test rare.svm
  expect 0 "test accuracy 95.00% (200 rows), baseline 95.00%" "warning: accuracy 95.00% is no better than the baseline of 95.00%"
  run linblock evaluate m rare.svm
  expect 0 "baseline 95.00% (always -1)" "balanced 50.00%" "warning: accuracy 95.00% is no better"
  run linblock evaluate m rare.svm --json
  expect 0 '"baseline":0.95' '"balanced_accuracy":0.5'
  for command in "cv --cost 1e-6" "tune --costs 1e-6,1e-5"; do
    run linblock ${command%% *} rare.svm ${command#* }
    expect 0 "warning: accuracy 9" "% is no better than the baseline of 95.00%"
  done
  run linblock tune rare.svm --positive 1 --costs 1e-6,1e-5
  expect 0 "no better than the baseline of 95.00%"
  run linblock evaluate m good.svm
  [[ "$output" == *"baseline "* ]]
  linblock train good.svm -o m -q
  run linblock evaluate m good.svm
  [[ "$output" != *"warning"* ]]
}
