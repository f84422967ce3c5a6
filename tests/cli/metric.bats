# --metric of cv and tune, --threshold of train: rare labels, as people meet them.
load helpers

# json FILE EXPRESSION: what Python makes of it.
json() { python3 -c "import json; j = json.load(open('$1')); assert $2, j"; }

# rare FILE ROWS SEED: one row in a hundred is positive, and three of six features tell which, with noise.
rare() {
  python3 - "$@" <<'END'
import random, sys
path, rows, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
with open(path, "w") as file:
    for i in range(rows):
        positive = i % 100 == 0
        values = [random.gauss(1.5 if positive and j < 3 else 0, 1) for j in range(6)]
        file.write(("1" if positive else "-1") + "".join(f" {j + 1}:{x:.4f}" for j, x in enumerate(values)) + " 7:1\n")
END
}

@test "on 1% positives tune by accuracy always says no, and by F1 or AUC it does not" {
  # Every hundredth positive row of some documents, and all the negative ones: 2% of these look positive.
  linblock generate documents -o all.svm --rows 40000 --features 2000 --nonzeros 30 --noise 0.02 -q
  awk '$1 == -1 || ++n % 100 == 0' all.svm >rare.svm
  linblock pack rare.svm -o r -q
  options="--loss logistic --costs 0.0001:1:10 -q --json"
  linblock tune r $options -o by_accuracy >a
  json a "j['metric'] == 'accuracy' and j['best_cost'] == 0.0001 and j['value'] == j['accuracy']"
  linblock predict by_accuracy rare.svm -q >labels
  [ "$(sort -u labels)" = "-1" ]
  linblock tune r $options --metric f1 -o by_f1 >f
  json f "j['metric'] == 'f1' and j['best_cost'] > 0.9 and j['value'] > 0.03 and j['metric_baseline'] == 0"
  json f "all(len(c['folds']) == 5 and abs(sum(c['folds']) / 5 - c['value']) < 1e-12 for c in j['costs'])"
  json f "max(c['value'] for c in j['costs']) == j['value'] and j['costs'][0]['value'] == 0"
  linblock predict by_f1 rare.svm -q >labels
  [ "$(sort -u labels | wc -l)" -eq 2 ]
  linblock tune r $options --metric auc >u
  json u "j['best_cost'] > 0.9 and j['value'] > 0.9 and j['metric_baseline'] == 0.5"
  linblock tune r $options --metric log-loss >l
  json l "j['value'] == min(c['value'] for c in j['costs']) and 0.05 < j['metric_baseline'] < 0.06"
  linblock tune r $options --metric balanced-accuracy >b
  json b "j['value'] > 0.51 and j['metric_baseline'] == 0.5"
}

@test "tune shows the metric in its table, and warns if no cost is better than its baseline" {
  rare rare.svm 2000 2
  linblock pack rare.svm -o r -q
  run linblock tune r --loss logistic --costs 0.01:10:10 --metric auc
  expect 0 "cost        AUC  deviation" "the best cost is " ", with AUC 0.9" "next: linblock train r -o MODEL --cost"
  [[ "$output" != *"--metric"* ]]
  run linblock tune r --loss logistic --costs 1e-6:1e-5:10 --metric f1
  expect 0 "with F1 0.00%" "warning: F1 0.00% is no better than the baseline of 0.00%" "--class-weight balanced"
  run linblock tune r --loss logistic --costs 1e-6:1e-5:10 --metric log-loss
  expect 0 "with log-loss 0." "warning: log-loss" "the label frequencies for every row"
}

@test "cv shows the metric per fold and its mean" {
  rare rare.svm 2000 3
  for metric in balanced-accuracy:"balanced accuracy" f1:F1 log-loss:log-loss; do
    run linblock cv rare.svm --loss logistic --metric "${metric%%:*}" --class-weight balanced
    expect 0 "fold   1  accuracy" "  ${metric##*:} " "mean      ${metric##*:} "
  done
  run linblock cv rare.svm --loss logistic --metric auc
  expect 0 "mean      AUC 0.9"
  linblock cv rare.svm --loss logistic --metric f1 --class-weight balanced -q --json >j
  json j "j['metric'] == 'f1' and len(j['folds']) == 5 and len([f for f in j['folds'] if f['value'] is not None]) >= 4"
  python3 -c "
import json
j = json.load(open('j'))
values = [fold['value'] for fold in j['folds'] if fold['value'] is not None]
assert abs(sum(values) / len(values) - j['value']) < 1e-12, j"
  json j "abs(sum(f['accuracy'] for f in j['folds']) / 5 - j['accuracy']) < 1e-12"
  linblock cv rare.svm --loss logistic -q --json >j
  json j "j['metric'] == 'accuracy' and j['value'] == j['accuracy'] and j['metric_baseline'] == j['baseline']"
}

@test "metrics and thresholds that do not fit are refused before any work" {
  linblock generate documents -o three.svm --rows 300 --features 100 --nonzeros 10 --classes 3 -q
  linblock pack three.svm -o s -q
  before=$(ls)
  for command in cv tune; do
    run linblock $command three.svm --metric log-loss
    expect 2 "--metric log-loss needs models with probabilities, and squared-hinge has none" "--loss logistic"
    run linblock $command s --metric auc
    expect 2 "--metric auc is for two classes, and there are 3 labels" "--positive"
    run linblock $command s --metric recall
    expect 2 "--metric 'recall' is not accuracy, balanced-accuracy, f1, auc or log-loss"
  done
  run linblock train s -o m --threshold f1
  expect 2 "--threshold is for two classes, and there are 3 labels" "--positive"
  run linblock train s -o m --threshold auc
  expect 2 "--threshold 'auc' is not none or accuracy, balanced-accuracy or f1"
  run linblock train s -o m --hold-out 0.1
  expect 2 "--hold-out is for a --threshold"
  run linblock train s -o m --loss hinge --positive 1 --threshold f1 --calibrate 0.1 --hold-out 0.1
  expect 2 "--calibrate and --hold-out both say"
  [ "$(ls)" = "$before" ]
}

@test "train --threshold raises F1 on 1% positives, and predict, evaluate and convert keep the threshold" {
  rare rare.svm 20000 4
  rare test.svm 10000 5
  linblock pack rare.svm -o r -q
  linblock train r -o plain --loss logistic -q
  run linblock train r -o model --loss logistic --threshold f1
  expect 0 "threshold -" " held-out rows, " "with the threshold 0" \
    "warning: liblinear-predict does not know the decision threshold"
  linblock evaluate plain test.svm --json -q >p
  linblock evaluate model test.svm --json -q >m
  python3 -c "
import json
plain, model = (json.load(open(name))['per_class']['1']['f1'] for name in 'pm')
assert model > plain + 0.05, (plain, model)"
  linblock predict model test.svm -q --scores >scores
  python3 -c "
import json
threshold = json.load(open('model.json'))['threshold']
assert json.load(open('model.json'))['threshold_metric'] == 'f1' and threshold < 0
for line in open('scores'):
    label, score = line.split()
    assert (float(score) > threshold) == (label == '1'), line"
  linblock convert model -o binary --model-format binary -q
  linblock predict binary test.svm -q --scores >binary_scores
  cmp scores binary_scores
  run linblock weights model
  expect 0 "class 1 (above -" "decision threshold -"
  run linblock diff plain model
  expect 0 "threshold             0"
  run linblock evaluate model test.svm
  expect 0 "macro F1"
  [[ "$output" != *"no better than the baseline"* ]]
}

@test "a threshold and probabilities can be learned from the same held-out rows" {
  rare rare.svm 8000 6
  linblock train rare.svm -o both --loss hinge --threshold f1 --calibrate 0.3 -q --json >j
  json j "j['threshold']['metric'] == 'f1' and j['threshold']['value'] >= j['threshold']['value_at_0']"
  json j "2200 < j['threshold']['rows'] < 2600"
  run linblock predict both rare.svm --probability -q
  expect 0 "labels 1 -1"
}
