# train --solver indexed: rows near the margin, found by the store's index.
load helpers

make_store() {
  linblock generate clusters -o clusters.svm --rows 20000 --features 10 --noise 0.05 -q
  linblock pack clusters.svm -o store -q
}

@test "the index is built where it is not there, used where it is, and never stale" {
  make_store
  run linblock train store -o m --solver indexed --loss hinge
  expect 0 "the index of 'store' is not there yet: building it" "truncated objective" "outliers"
  run linblock train store -o m --solver indexed --loss hinge
  expect 0 "truncated objective"
  [[ $output != *"building"* ]]
  linblock generate clusters -o more.svm --rows 2000 --features 10 --noise 0.05 --seed 2 -q
  linblock append store more.svm -q
  run linblock train store -o m --solver indexed --loss hinge
  expect 0 "truncated objective"
  printf '1\n2\n3\n' >ids
  linblock remove store --rows ids -q
  run linblock train store -o m --solver indexed --loss hinge
  expect 0 "of other rows: building it anew"
}

@test "its answers are those of the batch solver, and of the convex one with --truncate none" {
  make_store
  linblock index store -q
  for options in "--loss hinge" "--loss squared-hinge" "--loss squared-hinge --block-solver newton"; do
    linblock train store -o m --solver indexed $options --truncate none --json -q >indexed.json
    linblock train store -o m --solver dual ${options/--block-solver newton/} --tolerance 0.001 --json -q >dual.json
    linblock train store -o m --solver indexed $options --json -q >cut.json
    python3 - <<'END'
import json
indexed, dual, cut = (json.load(open(name + ".json")) for name in ("indexed", "dual", "cut"))
assert indexed["termination"] == "converged" and "truncated" not in indexed, indexed
assert indexed["certified_gap"] <= 0.01 and abs(indexed["primal"] / dual["primal"] - 1) < 0.012, (indexed, dual)
assert cut["truncated"]["s"] == 1 and cut["truncated"]["objective"] <= 1.001 * indexed["primal"], (cut, indexed)
assert cut["support_vectors"] < indexed["support_vectors"], (cut, indexed)
END
  done
}

@test "before it has looked at all rows it says how many it has found, and nothing of the objective" {
  make_store
  run linblock train store -o m --solver indexed --loss hinge --truncate none --trace trace.jsonl
  expect 0 "rows near the margin so far, looking for more," "gap about" "converged: gap"
  [[ $output != *"objective 0 "* && $output != *"inf"* ]]
  python3 - <<'END'
import json
passes = [line for line in map(json.loads, open("trace.jsonl")) if line["event"] == "pass"]
best = passes[-1]["dual"]
assert all(line["active_rows"] > 0 for line in passes), passes
assert passes[0]["primal"] is None and passes[0]["gap"] is None, passes[0]
assert all(line["primal"] is None or line["primal"] >= best for line in passes), passes
assert passes[-1]["certified"] and passes[-1]["gap"] <= 0.01, passes[-1]
END
  run linblock report trace.jsonl -o report.html
  expect 0 "1 run"
}

@test "classes, folds, costs and calibration share one index" {
  linblock generate clusters -o three.svm --rows 9000 --features 8 --classes 3 -q
  linblock pack three.svm -o store -q
  linblock index store -q
  linblock train store -o m --solver indexed --loss hinge --json -q >out.json
  python3 -c 'import json; out = json.load(open("out.json")); assert len(out["tasks"]) == 3, out'
  run linblock evaluate m three.svm
  expect 0 "accuracy"
  run linblock cv store --solver indexed --loss hinge --folds 3
  expect 0 "mean      accuracy"
  run linblock tune store -o m --solver indexed --loss hinge --folds 3 --costs 0.01:1:10
  expect 0 "the best cost is"
  run linblock train store -o m --solver indexed --calibrate 0.2
  expect 0 "truncated objective"
}

@test "the same bits in any number of threads" {
  linblock generate clusters -o three.svm --rows 9000 --features 8 --classes 3 -q
  linblock pack three.svm -o store -q
  linblock train store -o one --solver indexed --threads 1 -q
  linblock train store -o four --solver indexed --threads 4 -q
  cmp one four
}

@test "what it cannot do is refused before anything is read" {
  run linblock train absent.svm -o m --solver indexed --loss logistic
  expect 2 "indexed needs a loss that is zero beyond the margin, and logistic is none"
  run linblock train absent.svm -o m --solver indexed --loss hinge --block-solver newton
  expect 2 "needs --loss squared-hinge"
  run linblock train absent.svm -o m --solver indexed --block-solver cg
  expect 2 "'cg' is not dual or newton"
  run linblock train absent.svm -o m --solver indexed --query 0
  expect 2 "--query"
  run linblock train absent.svm -o m --solver newton --query 10
  expect 2 "--query is for --solver indexed"
  run linblock train absent.svm -o m --solver indexed --truncate none --keep-state
  expect 2 "has nothing to start from"
  run linblock train absent.svm -o m --solver indexed --truncate -1
  expect 2 "--truncate"
}

@test "an index with another bias is refused with the remedy" {
  make_store
  linblock index store -q
  run linblock train store -o m --solver indexed --bias 1
  expect 2 "was built without a bias" "linblock index store --bias 1"
  linblock index store --bias 1 -q
  run linblock train store -o m --solver indexed --bias 1
  expect 0 "truncated objective"
}

@test "a damaged page is named, not used" {
  make_store
  linblock index store -q
  python3 - <<'END'
import glob
path = glob.glob("store/index/segment-*.rows")[0]
data = bytearray(open(path, "rb").read())
for at in range(5000, len(data), 4096): data[at] ^= 1
open(path, "wb").write(data)
END
  run linblock train store -o m --solver indexed
  expect 4 "store/index/segment-000001.rows" "chunk"
}

@test "too little memory is refused with numbers, and little memory is kept to" {
  make_store
  linblock index store -q
  run linblock train store -o m --solver indexed --memory 1M
  expect 6 "--memory allows 1.0 MB"
  run linblock train store -o m --solver indexed --memory 32M
  expect 0 "of 32 MB used"
}
