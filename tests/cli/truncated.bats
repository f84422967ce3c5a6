# --truncate: losses that count as 1 + S at most.
load helpers

make_noisy() {
  linblock generate dense -o noisy.svm --rows 2000 --features 20 --noise 0.2 -q
}

@test "truncated losses are trained, reported, and predicted with as any model" {
  make_noisy
  for options in "--loss hinge" "--loss squared-hinge --solver dual" "--solver newton" "--solver primal" \
    "--loss logistic --solver newton"; do
    run linblock train noisy.svm -o m --truncate 0.5 $options
    expect 0 "converged: truncated objective" "outliers" "of the last convex problem" "another start may reach another optimum"
    grep -q '"truncated"' m.json
    run linblock evaluate m noisy.svm
    expect 0 "accuracy"
  done
}

@test "--json and --trace say what was cut" {
  make_noisy
  linblock train noisy.svm -o m --loss hinge --truncate 0.5 --json -q --trace trace.jsonl >out.json
  python3 - <<'END'
import json
out = json.load(open("out.json"))
assert out["truncated"]["s"] == 0.5, out
assert out["truncated"]["outliers"] > 0 and out["truncated"]["outer_steps"] > 0, out
assert 0 < out["support_vectors"] <= 2000 - out["truncated"]["outliers"], out
lines = [json.loads(line) for line in open("trace.jsonl")]
assert lines[0]["truncate"] == 0.5
passes = [line for line in lines if line["event"] == "pass"]
assert [line["pass"] for line in passes] == list(range(1, out["passes"] + 1)), passes
objectives = [line["truncated"]["objective"] for line in passes if "truncated" in line]
assert len(objectives) >= 2 and objectives == sorted(objectives, reverse=True), objectives
assert objectives[-1] == out["truncated"]["objective"] == lines[-1]["truncated"]["objective"]
END
}

@test "fewer support vectors than without" {
  make_noisy
  linblock train noisy.svm -o m --loss hinge --solver dual --json -q >convex.json
  linblock train noisy.svm -o m --loss hinge --solver dual --truncate 0 --json -q >cut.json
  python3 - <<'END'
import json
convex, cut = json.load(open("convex.json")), json.load(open("cut.json"))
assert "truncated" not in convex
assert cut["support_vectors"] < convex["support_vectors"], (cut, convex)
END
}

@test "cv, tune, classes and calibration go with it" {
  make_noisy
  run linblock cv noisy.svm --truncate 1 --folds 3
  expect 0 "truncated objective" "mean      accuracy"
  run linblock tune noisy.svm -o m --truncate 1 --loss hinge --folds 3 --costs 0.1:1:10
  expect 0 "the best cost is" "truncated objective"
  run linblock train noisy.svm -o m --truncate 1 --loss hinge --calibrate 0.2
  expect 0 "truncated objective"
  awk 'NR % 7 == 0 { $1 = 3 } { print }' noisy.svm >three.svm
  linblock train three.svm -o m --truncate 1 --json -q >out.json
  python3 - <<'END'
import json
out = json.load(open("out.json"))
assert len(out["tasks"]) == 3
assert sum(task["truncated"]["outliers"] for task in out["tasks"]) == out["truncated"]["outliers"]
END
}

@test "a model without truncation can be the start" {
  make_noisy
  linblock train noisy.svm -o first --solver dual --keep-state -q
  run linblock train noisy.svm -o second --warm first --truncate 1
  expect 0 "starting from 'first'" "truncated objective"
  run linblock train noisy.svm -o third --warm first --solver newton --truncate 1
  expect 0 "starting from the weights" "truncated objective"
}

@test "what is no S, or cannot be truncated, is refused before packing" {
  before=$(ls)
  for s in -1 x nan inf 1x ""; do
    run linblock train good.svm -o m "--truncate=$s"
    expect 2 "--truncate"
    [ "$(ls)" = "$before" ]
  done
  for solver in pegasos average subsample; do
    run linblock train good.svm -o m --truncate 1 --solver $solver
    expect 2 "$solver cannot truncate losses" "Use --solver dual, newton, primal, cmls or indexed"
  done
  run linblock train good.svm -o m --truncate 1 --multiclass crammer-singer
  expect 2 "crammer-singer cannot truncate losses"
  run linblock train good.svm -o m --truncate 1 --keep-state
  expect 2 "--truncate keeps no state" "Leave out --keep-state"
  [ "$(ls)" = "$before" ]
}

@test "a killed run goes on, and another S is refused" {
  linblock generate dense -o noisy.svm --rows 20000 --features 50 --noise 0.3 -q
  linblock pack noisy.svm -o s -q
  options="--loss hinge --truncate 0.5 --cost 10 --tolerance 1e-4 --checkpoint-seconds 0"
  linblock train s -o whole $options -q --json >whole.json
  timeout -s KILL 1 "$LINBLOCK" train s -o m $options -q || true
  if [ -e m.checkpoint/STATE ]; then
    run linblock train s -o m ${options/0.5/1}
    expect 2 "truncate: 0.5 then, 1 now"
  fi
  linblock train s -o m $options -q
  cmp whole m
  [ ! -e m.checkpoint ]
}
