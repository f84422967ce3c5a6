# What a person reads: each line says what it is about, and what to do next works.
load helpers

@test "the memory that a refusal names is enough, and it says what takes it" {
  linblock generate documents -o wide.svm --rows 300 --features 3000000 --nonzeros 20 -q
  linblock pack wide.svm -o wide.store -q
  while IFS=: read -r words options; do
    run linblock train wide.store -o model --memory 16M --max-passes 1 $options
    expect 6 "--memory allows 16 MB" "$words"
    memory=$(grep -o 'ive --memory [0-9]*M' <<<"$output" | grep -o '[0-9]*M')
    linblock train wide.store -o model --memory "$memory" --max-passes 1 $options -q
    [[ "$output" != *"--chunk-bytes"* ]]
  done <<END
The largest part is the weights:
or use fewer features:
or use --solver dual:--solver newton
or use --solver newton or dual:--solver primal
or use --multiclass one-vs-rest:--multiclass crammer-singer
END
  linblock pack good.svm -o good.store -q
  run linblock train good.store -o model --memory 1M
  expect 6 "The largest part is the program itself: give --memory" "or more"
  linblock pack good.svm -o large.store -q --chunk-bytes 8M --memory 1G
  run linblock append large.store good.svm --memory 17M
  expect 6 "give --memory"
  memory=$(grep -o 'give --memory [0-9]*M' <<<"$output" | grep -o '[0-9]*M')
  linblock append large.store good.svm --memory "$memory" -q
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
