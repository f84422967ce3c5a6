# Solvers that minimize over the weights: newton on rows, primal and cmls on columns.
load helpers

make_data() {
  linblock generate documents -o two.svm --rows 3000 --features 2000 --nonzeros 30 --seed 3 -q
  linblock generate documents -o three.svm --rows 2000 --features 1000 --nonzeros 30 --classes 3 --seed 4 -q
}

# value NAME: of the JSON summary in the file `json`.
value() { python3 -c "import json; print(json.load(open('json'))['$1'])"; }

@test "primal solvers, orders and losses come to the optimum of the dual one" {
  make_data
  for loss in squared-hinge logistic; do
    linblock train two.svm -o m --solver dual --loss $loss --tolerance 1e-6 -q --json >json
    best=$(value primal)
    for options in newton primal "primal --order cyclic" "primal --order once" "primal --order online" cmls \
      "cmls --order permuted"; do
      if [[ $loss == logistic && $options == cmls* ]]; then continue; fi
      run linblock train two.svm -o m --solver $options --loss $loss --tolerance 1e-5 --max-passes 5000
      expect 0 "converged: gap"
      linblock train two.svm -o m --solver $options --loss $loss --tolerance 1e-5 --max-passes 5000 -q --json >json
      [ "$(value solver)" = "${options% --*}" ]
      python3 -c "
import json
ours = json.load(open('json'))
assert abs(ours['primal'] / $best - 1) < 2e-5 and ours['certified_gap'] <= 1e-5, ('$options', '$loss', $best, ours)"
    done
  done
}

@test "columns are made when they are needed, and again when rows have changed" {
  make_data
  linblock pack two.svm -o s -q
  run linblock train s -o m --solver primal
  expect 0 "the columns of 's' are not there yet: transposing" "converged: gap"
  run linblock train s -o m --solver primal
  expect 0 "converged: gap"
  [[ "$output" != *transposing* ]]
  linblock append s two.svm -q
  run linblock train s -o m --solver cmls
  expect 0 "the columns of 's' are of other rows: transposing" "converged: gap"
}

@test "classes, folds and costs work with primal solvers" {
  make_data
  for solver in newton primal; do
    run linblock train three.svm -o m --solver $solver --test three.svm --bias 1 --class-weight balanced
    expect 0 "converged: gap" "test accuracy"
    run linblock cv three.svm --solver $solver --folds 3
    expect 0 "mean      accuracy"
    run linblock tune two.svm --solver $solver --folds 3 --costs 0.1:10:10 -o best
    expect 0 "the best cost is" "converged: gap"
    [ -s best ]
  done
}

@test "a model is gone on from by its weights alone" {
  make_data
  linblock train two.svm -o begun --solver dual --max-passes 1 -q
  for solver in newton primal; do
    run linblock train two.svm -o m --warm begun --solver $solver --tolerance 1e-6
    expect 0 "starting from the weights of 'begun'" "converged: gap"
    linblock train two.svm -o again --warm m --solver $solver --tolerance 1e-4 -q --json >json
    [ "$(value passes)" -le 2 ]
  done
  linblock train three.svm -o other -q
  run linblock train two.svm -o m --warm other --solver newton
  expect 0 "starting from the weights of 'other'"
  sed 's/^label.*/label 8 9 7/' other >strange
  run linblock train two.svm -o m --warm strange --solver newton
  expect 3 "other labels apart" "Leave out --warm"
  head -c 300 other >cut
  run linblock train two.svm -o m --warm cut --solver newton
  expect 4 "'cut' is not a usable model"
}

@test "the solver is chosen from the data, and it is said why" {
  make_data
  linblock generate dense -o few.svm --rows 3000 --features 10 --seed 5 -q
  run linblock train few.svm -o m
  expect 0 "squared-hinge, 3,000 rows x 10 features: newton, because rows are many for each feature"
  run linblock train few.svm -o m --loss hinge
  expect 0 "hinge, 3,000 rows x 10 features: dual, because rows are short for this cost"
  run linblock train few.svm -o m --loss hinge --tolerance 1e-4
  expect 0 "hinge, 3,000 rows x 10 features: newton, because rows are many for each feature"
  run linblock train few.svm -o m --solver dual --cost 1000 --max-passes 1
  expect 0 "this may take hundreds of passes" "Lower the --cost to about 42, scale the columns, or run 'linblock tune'"
  run linblock train two.svm -o m
  expect 0 "dual, because rows are few for each feature"
  run linblock train few.svm -o m --solver dual
  expect 0 "converged: gap"
  [[ "$output" != *because* ]]
  run linblock train few.svm -o m --keep-state
  expect 0 "converged: gap"
  [ -s m.state ]
}

@test "a primal run that is killed goes on, and ends with the same bytes" {
  linblock generate documents -o big.svm --rows 20000 --features 5000 --nonzeros 50 --seed 6 -q
  linblock pack big.svm -o s -q
  for solver in newton primal; do
    options="--solver $solver --tolerance 1e-9 --cost 100 --max-passes 60 --checkpoint-seconds 0.05"
    linblock train s -o whole $options -q
    for seconds in 0.3 0.5 0.7 5 50; do
      run timeout -s KILL $seconds "$LINBLOCK" train s -o m $options
      if [ "$status" -eq 0 ]; then break; fi
    done
    expect 0
    cmp m whole
  done
}
