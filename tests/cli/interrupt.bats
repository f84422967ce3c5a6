# Ctrl-C during training: an answer within two seconds, and a checkpoint that the same command resumes from.
load helpers

# Hard enough to be far from done when the signal comes: noisy labels, a high cost, a tolerance out of reach.
make_hard_store() {
  linblock generate dense -o hard.svm --rows 100000 --features 50 --noise 0.3 -q
  linblock pack hard.svm -o s --codec none -q
  rm hard.svm
}

# --foreground: one signal, as a terminal sends it; without, timeout sends two, and the second one kills.
# interrupted OPTIONS...: SIGINT after a second and a half of training; it must end within two.
interrupted() {
  local begin milliseconds
  begin=$(date +%s%N)
  run timeout --foreground --preserve-status -s INT -k 20 1.5 "$LINBLOCK" train s -o m --tolerance 1e-12 --cost 1000 \
    --solver dual --max-passes 1000000 "$@"
  milliseconds=$((($(date +%s%N) - begin) / 1000000 - 1500))
  expect 130 "interrupted"
  if [ $milliseconds -gt 2000 ]; then
    echo "it took $milliseconds ms to answer"
    return 1
  fi
}

# A block that was not done leaves nothing to go on from, and that is said.
goes_on() {
  if [[ "$output" == *"starts over"* ]]; then return; fi
  [ -s m.checkpoint/STATE ]
  [ ! -e m ]
  run timeout --foreground --preserve-status -s INT -k 20 1 "$LINBLOCK" train s -o m --tolerance 1e-12 --cost 1000 \
    --solver dual --max-passes 1000000 "$@"
  expect 130 "resuming from the checkpoint"
}

@test "Ctrl-C ends training with 130 within two seconds and leaves a checkpoint" {
  make_hard_store
  interrupted
  goes_on
}

@test "Ctrl-C ends blocks that are solved to convergence as soon" {
  make_hard_store
  interrupted --inner converge
  goes_on --inner converge
}

@test "Ctrl-C ends one block of everything as soon" {
  make_hard_store
  interrupted --schedule fixed --blocks 1 --inner converge
  [[ "$output" == *"starts over"* ]]
}

@test "Ctrl-C ends streamed training as soon" {
  make_hard_store
  interrupted --memory 16M --inner 2
  goes_on --memory 16M --inner 2
}

@test "Ctrl-C while text is packed for training leaves no store and no model" {
  mkfifo pipe
  (echo "1 1:1"; echo "-1 1:2"; sleep 5) >pipe &
  run timeout --foreground --preserve-status -s INT -k 20 1 "$LINBLOCK" train pipe -o m --store s
  expect 130 "interrupted"
  [ ! -e s ]
  [ ! -e m ]
}

@test "Ctrl-C ends the other solvers with 130" {
  make_hard_store
  for options in "--solver pegasos" "--solver subsample --tolerance 1e-12 --cost 1000"; do
    run timeout --foreground --preserve-status -s INT -k 20 1.5 "$LINBLOCK" train s -o m --fresh --max-passes 1000000 $options
    expect 130 "interrupted"
  done
}
