bats_require_minimum_version 1.5.0
load helpers

@test "no command prints the help and exit code 2" {
  run linblock
  expect 2 "pack" "info" "verify" "unpack" "append" "remove" "compact" "generate"
}

@test "every command has --help with examples" {
  for command in pack info verify unpack append remove compact generate; do
    run linblock $command --help
    expect 0 "Examples:" "linblock $command"
  done
}

@test "an unknown command is answered with the nearest one" {
  run linblock pakc good.svm
  expect 2 "'pakc' is not a command" "did you mean 'pack'"
}

@test "an unknown option is answered with the nearest one" {
  run linblock pack good.svm -o s --memmory 64M
  expect 2 "has no option --memmory" "did you mean --memory"
}

@test "an option of another program is answered with linblock's, and all of them at once" {
  run linblock train -s 1 -c 4 -B 1 -w-1 2 -v 5 --C 3 --passes 9 --coost 2 good.svm
  expect 2 "LIBLINEAR's -s 1 is --loss squared-hinge --solver dual" "LIBLINEAR's -c 4 is --cost 4" \
    "LIBLINEAR's -B 1 is --bias 1" "LIBLINEAR's -w-1 2 is --class-weight -1=2" \
    "LIBLINEAR's -v 5 is 'linblock cv INPUT --folds 5'" "scikit-learn's --C 3 is --cost 3" \
    "Vowpal Wabbit's --passes is --max-passes" "no option --coost: did you mean --cost?"
  run linblock train -s 6 good.svm
  expect 2 "an L1 penalty, which linblock does not have"
  run linblock predict -b 1 good.svm m
  expect 2 "LIBLINEAR's -b is 'linblock predict MODEL INPUT --probability'"
}

@test "what LIBLINEAR's options are said to be works" {
  for words in "-s 0" "-s 1" "-s 2" "-s 3" "-s 7" "-c 4" "-B 1" "-w1 2"; do
    run linblock train $words good.svm -o m
    [ "$status" -eq 2 ]
    here=$(sed -n "s/.*LIBLINEAR's $words is //p" <<<"$output")
    [ -n "$here" ]
    linblock train good.svm -o m -q $here
  done
}

@test "an option that may be repeated does not take INPUT for a value" {
  linblock train --class-weight 1=2 good.svm -o m -q --class-weight -1=3
  linblock train --test good.svm good.svm -o m -q
}

@test "help shows what most people need, in 80 columns, and --help-all the rest" {
  run linblock train --help
  expect 0 "--cost" "--memory" "--help-all"
  [[ "$output" != *"--cache-fraction"* && "$output" != *"--checkpoint"* ]]
  run linblock train --help-all
  expect 0 "--cost" "--cache-fraction" "--checkpoint"
  run linblock train good.svm --help-all
  expect 0 "--cache-fraction"
  for command in train tune cv predict evaluate weights diff report pack append remove compact unpack info verify \
    transpose index generate help; do
    linblock $command --help >help
    [ -z "$(sed '/^Examples:/,$d' help | awk 'length > 80')" ]
  done
  [ -z "$(linblock train --help-all | sed '/^Examples:/,$d' | awk 'length > 80')" ]
}

@test "help explains topics and commands" {
  run linblock help
  expect 0 "memory" "certificate" "exit-codes"
  run linblock help exit-codes
  expect 0 "130  interrupted"
  [ "$(linblock help train)" = "$(linblock train --help)" ]
  for topic in memory certificate exit-codes; do [ -z "$(linblock help $topic | awk 'length > 84')" ]; done
  run linblock help pakc
  expect 2 "'pakc' is not a command: did you mean 'pack'?"
}

@test "with --json an error is an object too, and a sentence on stderr" {
  run --separate-stderr linblock train nothing.svm -o m --json
  [ "$status" -eq 2 ] || [ "$status" -eq 3 ] || [ "$status" -eq 5 ]
  [ "$(jq -r .error.exit_code <<<"$output")" -eq "$status" ]
  [[ "$stderr" == "error: "* ]]
  printf '1 1:0.5 2:1\n-1 7:0.25 3:1\n' >bad.svm
  run --separate-stderr linblock train bad.svm -o m --json
  [ "$(jq -r .error.kind <<<"$output")" = input ]
  [[ "$(jq -r .error.message <<<"$output")" == *"bad.svm:2:11: feature index 3 follows 7"* ]]
  run --separate-stderr linblock train good.svm -o m --memory 1M --json
  [ "$(jq -r '.error.remedies | length > 0' <<<"$output")" = true ]
  run --separate-stderr linblock train good.svm --json --coost 1
  [ "$(jq -r .error.kind <<<"$output")" = usage ]
  linblock generate documents -o d.svm --rows 2000 --features 500 -q
  run --separate-stderr linblock train d.svm -o m --json --max-passes 1 --tolerance 1e-9 --require-converged --solver dual
  [ "$status" -eq 7 ]
  [ "$(jq -r .converged <<<"$output")" = false ]
}

@test "a missing output is a usage error" {
  run linblock pack good.svm
  expect 2 "-o STORE (or --output) is required: the store to make"
  run linblock train good.svm
  expect 2 "-o MODEL (or --output) is required: the model to write"
}

@test "sizes, threads and choices are explained when they are wrong" {
  run linblock pack good.svm -o s --memory lots
  expect 2 "--memory 'lots' is not a size" "64M"
  run linblock pack good.svm -o s --memory 1M
  expect 6 "too little" "Give --memory 16M or more"
  run linblock pack good.svm -o s --threads 0
  expect 2 "--threads '0'"
  run linblock pack good.svm -o s --codec gzip
  expect 2 "'gzip' is not a codec" "zstd"
  run linblock pack good.svm -o s --index-base 2
  expect 2 "--index-base '2'"
  run linblock pack good.svm -o s --chunk-bytes 1K
  expect 2 "--chunk-bytes" "4K"
  [ ! -e s ]
}

@test "--version is that of the build, and MODEL.json names it" {
  version=$(sed -n 's/^project(linblock VERSION \([0-9.]*\) .*/\1/p' "$BATS_TEST_DIRNAME/../../CMakeLists.txt")
  [ -n "$version" ]
  run linblock --version
  [ "$status" -eq 0 ]
  [ "$output" = "linblock $version" ]
  linblock train good.svm -o model -q
  [ "$(jq -r .program model.json)" = "linblock $version" ]
}
