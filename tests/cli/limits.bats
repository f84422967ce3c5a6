# A run resumes under another memory limit or number of threads; and the limits of the system count.
load helpers

make_store() {
  linblock generate dense -o rows.svm --rows 60000 --features 60 --noise 0.2 -q
  linblock pack rows.svm -o s --codec none -q
  rm rows.svm
}

options="--loss hinge --solver dual --tolerance 1e-4 --cost 0.1 --max-passes 12"

# killed COMMAND...: until it has a checkpoint.
killed() {
  local delay
  for delay in 0.3 0.6 1.2 2.4 4.8; do
    timeout -s KILL $delay "$LINBLOCK" "$@" --checkpoint-seconds 0 -q >/dev/null || true
    [ ! -s "$state" ] || return 0
  done
  echo "no checkpoint"
  return 1
}

@test "killed under 16M and resumed under 64M with other threads, train writes the bytes of the run under 16M" {
  make_store
  linblock train s -o whole $options --memory 16M --threads 1 -q
  linblock train s -o much $options --memory 64M --threads 1 -q
  run cmp whole much
  [ "$status" -ne 0 ]
  state=parts.checkpoint/STATE
  killed train s -o parts $options --memory 16M --threads 1
  run linblock train s -o parts $options --memory 64M --threads 3
  expect 0 "this run began with --memory 16M, and resumes with its plan" "resuming from the checkpoint"
  cmp whole parts
}

@test "killed under 128M, train is refused under 16M in sizes that people write, and resumes under 64M" {
  make_store
  linblock train s -o whole $options --memory 128M -q
  state=parts.checkpoint/STATE
  killed train s -o parts $options --memory 128M
  run linblock train s -o parts $options --memory 16M
  expect 2 "is a checkpoint of a run whose plan needs more memory" "memory: 128M then, 16M now" "Give --memory 128M" \
    "--fresh"
  run linblock train s -o parts $options --memory 16M --json -q
  expect 2 '"kind":"usage"' "memory: 128M then, 16M now"
  run linblock train s -o parts $options --memory 64M
  expect 0 "resuming from the checkpoint"
  cmp whole parts
}

@test "killed under 16M and resumed under 64M, tune trains the model of the run under 16M" {
  make_store
  tuning="--folds 2 --costs 0.01,0.1 --loss hinge --solver dual --max-passes 6"
  linblock tune s -o whole $tuning --memory 16M -q >/dev/null
  state=parts.checkpoint/STATE
  killed tune s -o parts $tuning --memory 16M
  run linblock tune s -o parts $tuning --memory 64M --threads 3
  expect 0 "this run began with --memory 16M" "the best cost is"
  cmp whole parts
  state=again.checkpoint/STATE
  killed tune s -o again $tuning --memory 64M
  run linblock tune s -o again $tuning --memory 32M
  expect 2 "memory: 64M then, 32M now" "Give --memory 64M"
}

@test "limits of the process count for the default of --memory" {
  linblock generate documents -o docs.svm --rows 500 --features 200 --nonzeros 10 -q
  [ -z "$LINBLOCK_SANITIZE" ] || skip "a sanitizer takes address space"
  for limit in v d; do
    run bash -c "ulimit -S -$limit 409600; '$LINBLOCK' train docs.svm -o m"
    expect 0 " MB of 200 MB used"
  done
  run bash -c "ulimit -S -v 409600; '$LINBLOCK' train docs.svm -o m --memory 64M"
  expect 0 " MB of 64 MB used"
}
