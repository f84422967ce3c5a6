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
