# Each test has a folder of its own; `linblock` is the program under test.
setup() {
  folder=$(mktemp -d)
  cd "$folder"
  printf '1 1:0.5 3:1\n-1 2:2 3:0.25\n1 1:1\n' >good.svm
}

teardown() {
  cd /
  rm -rf "$folder"
}

linblock() { "$LINBLOCK" "$@"; }

# expect CODE WORDS...: the last `run` ended with CODE and printed every one of WORDS.
expect() {
  local code=$1 word
  shift
  if [ "$status" -ne "$code" ]; then
    echo "exit code $status instead of $code; output: $output"
    return 1
  fi
  for word in "$@"; do
    if [[ "$output" != *"$word"* ]]; then
      echo "'$word' is missing in: $output"
      return 1
    fi
  done
}
