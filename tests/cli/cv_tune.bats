# cv and tune, as they are called.
load helpers

make_data() {
  linblock generate documents -o two.svm --rows 1500 --features 400 --nonzeros 20 --noise 0.05 -q
  linblock generate documents -o four.svm --rows 1500 --features 400 --nonzeros 20 --classes 4 -q
}

# json FILE EXPRESSION: what Python makes of it.
json() { python3 -c "import json; j = json.load(open('$1')); assert $2, j"; }

@test "cv shows every fold, their mean, and all of them together" {
  make_data
  run linblock cv two.svm --folds 3 -q
  expect 0 "fold   1  accuracy" "fold   3  accuracy" "AUC" "mean      accuracy" "all folds together:" "(1," "macro F1"
  [ ! -e two.svm.cv.checkpoint ]
  linblock cv two.svm --folds 3 -q --json >j
  json j "len(j['folds']) == 3 and sum(f['rows'] for f in j['folds']) == 1500"
  json j "abs(sum(f['accuracy'] for f in j['folds']) / 3 - j['accuracy']) < 1e-12"
  json j "j['converged'] and j['certified_gap'] <= 0.01 and j['auc'] > 0.5 and j['groups'] == 1"
  linblock cv four.svm -q --json >j
  json j "len(j['folds']) == 5 and len(j['per_class']) == 4 and j['auc'] is None"
  linblock cv four.svm -q --json --positive 2 >j
  json j "len(j['per_class']) == 2 and j['auc'] > 0.5"
}

@test "any number of threads gives the same numbers" {
  make_data
  linblock cv four.svm --folds 2 -q --json --tolerance 1e-4 >j
  linblock cv four.svm --folds 2 -q --json --tolerance 1e-4 --threads 3 >k
  python3 -c "
import json
a, b = json.load(open('j')), json.load(open('k'))
for key in ('folds', 'confusion', 'primal', 'dual', 'passes'):
    assert a[key] == b[key], key"
}

@test "folds that cannot be are refused, with a sentence" {
  make_data
  linblock pack good.svm -o good.store -q
  before=$(ls)
  for folds in 0 1 -1 x 2.5 65536 99999999999; do
    for command in cv tune; do
      run linblock $command two.svm --folds=$folds
      expect 2 "--folds '$folds' is not a whole number from 2 to 65535"
    done
  done
  run linblock cv good.store --folds 4
  expect 3 "--folds 4: there are only 3 rows"
  run linblock cv absent.svm
  expect 3 "'absent.svm' does not exist"
  [ "$(ls)" = "$before" ]
  printf '1 1:1\n1 2:1\n1 1:2\n' >one.svm
  for command in cv tune; do
    run linblock $command one.svm --folds 2
    expect 3 "two classes"
  done
  run linblock cv two.svm --positive 9
  expect 3 "no row has this label"
}

@test "a fold that has never seen a class says so" {
  linblock generate documents -o some.svm --rows 300 --features 100 --nonzeros 20 --classes 3 -q
  echo "77 1:1 5:2" >>some.svm
  run linblock cv some.svm --folds 3
  expect 0 "holds out all rows with label 77" "its model has never seen one"
  run linblock cv good.svm --folds 3
  expect 0 "mean      accuracy"
}

@test "cv takes the other solvers" {
  make_data
  for options in "--solver pegasos --loss hinge --max-passes 5" "--solver average" "--solver subsample" \
    "--solver newton" "--solver primal --order cyclic" "--loss logistic --solver primal"; do
    run linblock cv two.svm --folds 3 $options
    expect 0 "mean      accuracy"
  done
  run linblock cv two.svm --solver newtron
  expect 2 "--solver 'newtron'"
}

@test "tune shows its costs, marks the best and trains with it" {
  make_data
  run linblock tune two.svm --folds 3 --costs 0.01:10:10 -o model
  expect 0 "4 costs from 0.01 to 10, 3 folds" "the best cost is" "converged: gap" "next: linblock predict model" \
    "(model was trained with cost "
  [ ! -e model.checkpoint ]
  linblock predict model two.svm -o labels -q
  linblock tune two.svm --folds 3 --costs 0.01:10:10 --json -q >j
  json j "[c['cost'] for c in j['costs']] == [0.01, 0.1, 1, 10]"
  json j "round(j['accuracy'], 4) == max(round(c['accuracy'], 4) for c in j['costs']) and 'model' not in j"
  best=$(python3 -c "import json; print(json.load(open('j'))['best_cost'])")
  python3 -c "import json; assert json.load(open('model.json'))['cost'] == $best"
  linblock cv two.svm --folds 3 --cost "$best" -q --json >k
  python3 -c "
import json
assert abs(json.load(open('j'))['accuracy'] - json.load(open('k'))['accuracy']) < 0.01"
  run linblock tune two.svm --folds 3
  expect 0 "next: linblock train two.svm.linblock -o MODEL --cost"
  [ ! -e two.svm.tune.checkpoint ]
}

@test "tune shows each cost once, and ends with the command that trains" {
  make_data
  linblock pack two.svm -o two.store -q
  options="--folds 3 --loss hinge --bias 1 --memory 64M --class-weight 1=2 --class-weight=-1=3"
  linblock tune two.store --costs 0.1:10:10 $options >out 2>err
  [ "$(grep -c '%' out)" -eq 4 ]
  [ "$(grep -c 'the best cost is' out)" -eq 1 ]
  ! grep accuracy err
  best=$(sed -n 's/^the best cost is \([^,]*\),.*/\1/p' out)
  next=$(tail -n 1 err)
  [ "$next" = "next: linblock train two.store -o MODEL --cost $best --loss hinge --bias 1 --class-weight 1=2 \
--class-weight -1=3 --memory 64M" ]
  run ${next#next: }
  expect 0 "converged: gap"
  linblock tune two.svm --costs 0.1:10:10 --folds 3 --normalize --codec none --json -q >j 2>err
  [ "$(wc -l <j)" -eq 1 ]
  run linblock tune two.svm --costs 0.1:10:10 --folds 3 --normalize --codec none --json
  expect 0 "cost 10: accuracy" "the best cost is" "next: linblock train two.svm.linblock -o MODEL --cost "
  [[ "$output" != *"--normalize"* ]]
}

@test "of costs that are equally good tune takes the smallest, and says so" {
  for i in $(seq 20); do printf '1 1:1\n-1 2:1\n'; done >apart.svm
  run linblock tune apart.svm --folds 2 --costs 1,0.1,10
  expect 0 "3 costs from 0.1 to 10" "the best cost is 0.1, with accuracy 100.00%: the smallest of 3 that have it"
}

@test "the model of tune is the one of train at that cost" {
  make_data
  for data in two four; do
    linblock tune $data.svm --folds 3 --costs 0.1:1:10 -o tuned --tolerance 1e-4 -q --json >j
    best=$(python3 -c "import json; print(json.load(open('j'))['best_cost'])")
    linblock train $data.svm --cost "$best" -o trained --tolerance 1e-4 -q --json >k
    python3 -c "
import json
a, b = json.load(open('tuned.json')), json.load(open('trained.json'))
assert a['certified_gap'] <= 1e-4 and abs(a['primal'] - b['primal']) <= 2e-4 * b['primal'], (a, b)
assert a['labels'] == b['labels'] and a['features'] == b['features']"
  done
}

@test "costs that cannot be are refused before packing" {
  make_data
  before=$(ls)
  for costs in "" 1 1: 1:2:3:4 a:b 1:2:x 1, 1,x; do
    run linblock tune two.svm --costs "$costs"
    expect 2 "--costs" "or a list, such as 0.1,1,10"
  done
  run linblock tune two.svm --costs 1,0
  expect 2 "--costs '1,0': costs are above 0"
  for costs in 0:1:2 -1:1:2 1:2:1 1:2:0.5 nan:1:2 1:inf:2; do
    run linblock tune two.svm --costs="$costs"
    expect 2 "costs are above 0 and the factor is above 1"
  done
  run linblock tune two.svm --costs 2:1:2
  expect 2 "--costs '2:1:2' has no cost"
  run linblock tune two.svm --cost 3
  expect 2 "--cost"
  run linblock tune two.svm -o absent/model
  expect 5 "the directory 'absent' does not exist"
  [ "$(ls)" = "$before" ]
}

@test "models that do not fit in memory end tune with 6" {
  linblock generate documents -o wide.svm --rows 500 --features 3000000 --nonzeros 20 -q
  run linblock tune wide.svm --memory 16M --folds 10 --costs 1:2
  expect 6 "for each of 10 tasks" "--memory allows 16 MB" "The largest part: weights. Give --memory" "fewer --folds"
  [ ! -e wide.svm.tune.checkpoint ]
}

@test "killed at any moment, cv and tune end with the same numbers" {
  linblock generate documents -o some.svm --rows 6000 --features 2000 --nonzeros 40 --classes 3 -q
  linblock pack some.svm -o s -q --chunk-bytes 16K
  options="--loss hinge --inner 1 --tolerance 1e-4 --folds 3 -q --json --threads 1"
  linblock cv s $options >whole
  linblock tune s $options --costs 0.01:1:10 -o whole_model >whole_tune
  for delay in 0.05 0.1 0.15 0.2 0.25 0.3; do
    timeout -s KILL $delay "$LINBLOCK" cv s $options --checkpoint-seconds 0 >/dev/null || true
    timeout -s KILL $delay "$LINBLOCK" tune s $options --costs 0.01:1:10 -o m --checkpoint-seconds 0 >/dev/null || true
  done
  linblock cv s $options >parts
  linblock tune s $options --costs 0.01:1:10 -o m >parts_tune
  python3 -c "
import json
for name in ('', '_tune'):
    a, b = json.load(open('whole' + name)), json.load(open('parts' + name))
    for j in (a, b):
        for one in j.get('costs', []): del one['seconds']
    keys = ('folds', 'confusion', 'accuracy', 'primal', 'dual', 'certified_gap', 'passes', 'costs', 'best_cost', 'model', 'ended')
    for key in keys:
        assert a.get(key) == b.get(key), (name, key, a.get(key), b.get(key))"
  cmp whole_model m
  [ ! -e s.cv.checkpoint ]
  [ ! -e m.checkpoint ]
}

@test "a checkpoint of other folds or costs is refused with what differs" {
  linblock generate documents -o some.svm --rows 20000 --features 2000 --nonzeros 40 --noise 0.2 -q
  linblock pack some.svm -o s -q --chunk-bytes 16K
  options="--cost 100 --tolerance 1e-9 --checkpoint-seconds 0 -q"
  timeout -s INT 0.4 "$LINBLOCK" cv s $options || true
  [ -e s.cv.checkpoint/STATE ]
  run linblock cv s $options --folds 3
  expect 2 "checkpoint of another run" "folds: 5 then, 3 now" "--fresh"
  run linblock cv s --folds 3 --fresh
  expect 0 "mean      accuracy"
  [ ! -e s.cv.checkpoint ]
  timeout -s INT 0.4 "$LINBLOCK" tune s --tolerance 1e-9 -o m --checkpoint-seconds 0 -q --costs 100:1000 || true
  [ -e m.checkpoint ]
  run linblock tune s --tolerance 1e-9 -o m --costs 100:1000:3
  expect 2 "costs: 100,200,400,800 then, 100,300,900 now"
  run linblock train s --tolerance 1e-9 -o m
  expect 2 "costs: 100,200,400,800 then, not there now" "folds: 5 then, not there now"
  run linblock tune s -o m --costs 0.01:0.1:10 --folds 2 --fresh
  expect 0 "converged: gap"
  [ ! -e m.checkpoint ]
}

@test "a disk that is full when the work is done does not lose the answer" {
  make_data
  for command in cv tune; do
    options="--folds 3 -q --json"
    [ $command = cv ] || options+=" --costs 0.1:1:10"
    linblock $command two.svm $options >whole
    LINBLOCK_HOOK=ENOSPC:write:0 LINBLOCK_HOOK_PATH=STATE.stages "$LINBLOCK_HOOKED" $command two.svm $options >full
    python3 -c "
import json
a, b = json.load(open('whole')), json.load(open('full'))
assert a['accuracy'] == b['accuracy'] and a['primal'] == b['primal'], (a, b)"
    [ ! -e two.svm.$command.checkpoint ]
  done
}

@test "the model of all rows is trained by the method of the folds, and converges" {
  linblock generate documents -o g.svm --rows 3000 --features 510 --nonzeros 12 -q
  linblock pack g.svm -o g.store -q
  run linblock train g.store -o m --cost 0.1 --dry-run
  expect 0 "dual, because"
  linblock tune g.store -o m --costs 0.1:1024:2 --memory 64M --json -q >tuned
  [ "$(jq -r .solver tuned)" = newton ]
  [ "$(jq .converged tuned)" = true ]
}
