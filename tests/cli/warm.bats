# --keep-state, --warm and --calibrate, and models of several classes, as they are called.
load helpers

make_days() {
  linblock generate documents -o monday.svm --rows 2000 --features 400 --nonzeros 20 --noise 0.05 -q
  linblock generate documents -o tuesday.svm --rows 200 --features 400 --nonzeros 20 --noise 0.05 --skip 2000 -q
  linblock pack monday.svm -o days -q
}

@test "a model goes on from yesterday's after append, remove and compact" {
  make_days
  linblock train days -o monday --keep-state -q
  [ -s monday.state ]
  [ ! -e monday.checkpoint ]
  linblock append days tuesday.svm -q
  run linblock train days -o tuesday --warm monday --keep-state
  expect 0 "starting from 'monday': 2,000 rows keep their duals, 200 are new, 0 are gone" "converged: gap"
  seq 0 10 1999 | linblock remove days --rows - -q
  run linblock train days -o wednesday --warm tuesday --keep-state
  expect 0 "2,000 rows keep their duals, 0 are new, 200 are gone" "converged: gap"
  linblock compact days -q
  run linblock train days -o thursday --warm tuesday
  expect 0 "2,000 rows keep their duals, 0 are new, 200 are gone; its weights are computed again"
  linblock train days -o cold --tolerance 1e-5 -q
  linblock train days -o warm --tolerance 1e-5 --warm wednesday -q
  python3 -c "
import json
a, b = json.load(open('cold.json')), json.load(open('warm.json'))
assert b['certified_gap'] <= 1e-5 and abs(a['primal'] - b['primal']) <= 2e-5 * a['primal'], (a, b)"
}

@test "a state that does not fit is refused" {
  make_days
  run linblock train days -o m --warm monday
  expect 3 "there is no 'monday.state'" "--keep-state"
  linblock train days -o monday --keep-state -q
  run linblock train days -o m --warm monday --cost 7
  expect 2 "does not belong to this store and these options" "cost: 1 then, 7 now"
  run linblock train days -o m --warm monday --loss hinge --bias 1
  expect 2 "loss: squared-hinge then, hinge now" "bias: -1 then, 1 now"
  linblock pack tuesday.svm -o other -q
  run linblock train other -o m --warm monday
  expect 2 "store: "
  head -c 1000 monday.state >cut.state
  run linblock train days -o m --warm cut
  expect 4 "cut.state' is damaged. Train that model with --keep-state, or use --solver newton"
  for solver in average subsample; do
    run linblock train days -o m --solver $solver --keep-state
    expect 2 "--keep-state is for --solver dual and pegasos, --warm for dual, pegasos, newton, primal and cmls"
  done
  [ ! -e m.checkpoint ]
}

@test "pegasos goes on with its steps" {
  make_days
  linblock train days -o monday --solver pegasos --loss hinge --max-passes 3 --keep-state -q
  linblock append days tuesday.svm -q
  run linblock train days -o m --solver pegasos --loss hinge --max-passes 2 --warm monday
  expect 0 "starting from 'monday': its weights, and 6,000 steps"
}

@test "a warm run that is killed ends with the same bits, and keeps the same state" {
  linblock generate documents -o a.svm --rows 10000 --features 3000 --nonzeros 40 --noise 0.1 --classes 3 -q
  linblock generate documents -o b.svm --rows 2000 --features 3000 --nonzeros 40 --noise 0.1 --classes 3 --skip 10000 -q
  linblock pack a.svm -o s -q --chunk-bytes 16K
  linblock train s -o first --keep-state -q --loss hinge
  linblock append s b.svm -q
  options="--loss hinge --inner 1 --tolerance 1e-4 --warm first --keep-state -q"
  linblock train s -o whole $options
  for delay in 0.05 0.1 0.15 0.2 0.25 0.3; do
    timeout -s KILL $delay "$LINBLOCK" train s -o parts $options --checkpoint-seconds 0 || [ ! -e parts.state ]
  done
  linblock train s -o parts $options
  cmp whole parts
  cmp whole.state parts.state
  [ ! -e parts.checkpoint ]
}

@test "a calibrated model has probabilities that are better than a constant" {
  for classes in 2 3; do
    linblock generate documents -o train.svm --rows 3000 --features 400 --nonzeros 20 --noise 0.1 --classes $classes -q
    linblock generate documents -o test.svm --rows 1000 --features 400 --nonzeros 20 --noise 0.1 --classes $classes \
      --skip 3000 -q
    linblock train train.svm -o model --loss hinge --cost 0.1 --calibrate 0.2 -q --fresh
    linblock predict model test.svm --probability -o p -q
    python3 -c "
import math
lines = [line.split() for line in open('p')]
labels, rows = lines[0][1:], lines[1:]
truth = [line.split()[0].lstrip('+') for line in open('test.svm')]
loss = 0
for label, row in zip(truth, rows):
    shares = [float(x) for x in row[1:]]
    assert abs(sum(shares) - 1) < 1e-9, row
    loss -= math.log(shares[labels.index(label)]) / len(rows)
assert loss < 0.8 * math.log($classes), loss"
    run linblock evaluate model test.svm
    expect 0 "log-loss"
  done
}

@test "shares that cannot be held out are refused before packing" {
  before=$(ls)
  for share in 0 1 0.6 -0.1 nan inf x ""; do
    run linblock train good.svm -o m --calibrate="$share"
    expect 2 "--calibrate"
  done
  run linblock train good.svm -o m --calibrate 0.2 --loss logistic
  expect 2 "a logistic model has probabilities of its own"
  [ "$(ls)" = "$before" ]
}

@test "several classes are trained one against the rest, and say what is certified of each" {
  linblock generate documents -o train.svm --rows 2000 --features 400 --nonzeros 20 --classes 5 -q
  linblock generate documents -o test.svm --rows 500 --features 400 --nonzeros 20 --classes 5 --skip 2000 -q
  linblock train train.svm -o model -q --json --test test.svm >j
  python3 -c "
import json
for name in ('j', 'model.json'):
    tasks = json.load(open(name))['tasks']
    assert [task['label'] for task in tasks] == [1, 2, 3, 4, 5], tasks
    assert all(task['certified_gap'] <= 0.01 for task in tasks), tasks"
  linblock predict model test.svm -o ours -q
  [ "$(wc -l <ours)" -eq 500 ]
  linblock evaluate model test.svm --json >e
  python3 -c "
import json
e, j = json.load(open('e')), json.load(open('j'))
assert len(e['per_class']) == 5 and e['accuracy'] > 0.5
assert abs(e['accuracy'] - j['test']['accuracy']) < 1e-12, (e, j)"
  command -v liblinear-predict >/dev/null || skip "LIBLINEAR is not installed"
  for options in "" "--bias 1" "--loss logistic"; do
    linblock train train.svm -o model -q $options
    linblock predict model test.svm -o ours -q
    liblinear-predict test.svm model theirs >/dev/null
    cmp ours theirs
  done
}
