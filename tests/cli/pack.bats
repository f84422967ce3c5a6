load helpers

@test "pack, info, verify and unpack" {
  run linblock pack good.svm -o s
  expect 0 "packed 3 rows, 5 nonzeros" "next: linblock info s"
  run linblock info s
  expect 0 "rows        3" "features    3" "labels      2"
  run linblock verify s
  expect 0 "no damage found"
  run linblock unpack s
  expect 0
  [ "$output" = "$(cat good.svm)" ]
}

@test "what is for people goes to stderr, what is data to stdout" {
  linblock pack good.svm -o s >out 2>err
  [ ! -s out ]
  [ -s err ]
  linblock pack good.svm -o t -q >out 2>err
  [ ! -s out ]
  [ ! -s err ]
}

@test "--json prints one object with the agreed keys" {
  linblock pack good.svm -o s -q --json | python3 -c '
import json, sys
summary = json.load(sys.stdin)
assert summary["rows"] == 3 and summary["nonzeros"] == 5, summary'
  linblock info s --json | python3 -c '
import json, sys
info = json.load(sys.stdin)
for key in "rows features nonzeros labels bytes bytes_per_nonzero chunks segments codec index".split():
    assert key in info, key
assert info["labels"] == {"-1": 1, "1": 2}, info'
}

@test "standard input, several files, and compressed text" {
  gzip -k good.svm
  bzip2 -k good.svm
  xz -k good.svm
  zstd -q -k good.svm
  lz4 -q -k good.svm good.svm.lz4
  linblock pack good.svm good.svm.gz good.svm.bz2 good.svm.xz good.svm.zst good.svm.lz4 -o s -q
  run linblock unpack s
  [ "$(linblock unpack s | wc -l)" -eq 18 ]
  cat good.svm | linblock pack - -o piped -q
  linblock unpack piped | cmp - good.svm
  cat good.svm.gz | linblock pack - -o piped-gz -q
  linblock unpack piped-gz | cmp - good.svm
}

@test "a bad line is shown with its place and the reason" {
  printf '1 1:1\n-1 3:1 2:1\n' >bad.svm
  run linblock pack bad.svm -o s
  expect 3 "bad.svm:2:8:" "feature index 2 follows 3" "sort them" "-1 3:1 2:1" "       ^" "--max-bad-rows"
  [ ! -e s ]
  [ ! -e s.partial ]
}

@test "bad rows are skipped and kept when asked" {
  printf '1 1:1\nnonsense\n-1 2:1\n1 1:x\n' >bad.svm
  run linblock pack bad.svm -o s --max-bad-rows 2 --rejects rejects.svm
  expect 0 "packed 2 rows" "2 bad rows were skipped and kept in 'rejects.svm'"
  [ "$(cat rejects.svm)" = "$(printf 'nonsense\n1 1:x')" ]
  run linblock pack bad.svm -o t --max-bad-rows 1
  expect 3 "bad.svm:4:5:" "--max-bad-rows allows 1"
}

@test "inputs that are no data are refused, each with its reason" {
  touch empty.svm
  run linblock pack empty.svm -o s
  expect 3 "'empty.svm' is empty"
  mkdir folder
  run linblock pack folder -o s
  expect 3 "'folder' is a folder"
  run linblock pack absent.svm -o s
  expect 3 "'absent.svm' does not exist"
  printf '\n# only a comment\n' >comments.svm
  run linblock pack comments.svm -o s
  expect 3 "no rows"
  head -c 1000 /dev/urandom | tr -d '\037\102\375\050\004' >binary.svm
  printf '\001\000' | cat - binary.svm >binary2.svm
  run linblock pack binary2.svm -o s
  expect 3 "is not text"
  gzip -k good.svm
  head -c 40 good.svm.gz >cut.svm.gz
  run linblock pack cut.svm.gz -o s
  expect 3 "'cut.svm.gz' is compressed, and cut short or damaged"
  run linblock pack </dev/null - -o s
  expect 3 "standard input is empty"
  [ ! -e s ]
}

@test "an existing store is not overwritten" {
  linblock pack good.svm -o s -q
  run linblock pack good.svm -o s
  expect 2 "'s' exists already" "append"
}

@test "a folder that does not exist is named before any work" {
  run linblock pack good.svm -o nowhere/s
  expect 5 "the directory 'nowhere' does not exist"
}

@test "weights, one a row" {
  printf '1\n2.5\n0\n' >w
  linblock pack good.svm -o s -q --weights w
  linblock unpack s -q --weights back >/dev/null
  cmp w back
  printf '1\n2\n' >short
  run linblock pack good.svm -o t --weights short
  expect 3 "'short' has 2 weights, and the data has more rows"
  printf '1\n-2\n3\n' >negative
  run linblock pack good.svm -o t --weights negative
  expect 3 "negative:2:1:" "-2"
}

@test "append adds rows, and keeps the options of the store" {
  linblock pack good.svm -o s -q --normalize
  run linblock append s good.svm
  expect 0 "appended 3 rows" "s: 6 rows"
  linblock info s --json | grep -q '"normalized":true'
  linblock verify s -q
  run linblock append absent good.svm
  expect 3 "'absent' does not exist" "linblock pack"
  run linblock append good.svm good.svm
  expect 3 "'good.svm' is not a store"
}

@test "index 0 makes a store numbered from 0, unless 1 is given" {
  printf '1 0:1 2:1\n' >zero.svm
  linblock pack zero.svm -o s -q
  linblock info s | grep -q "features    3, numbered from 0"
  linblock unpack s | cmp - zero.svm
  run linblock pack zero.svm -o t --index-base 1
  expect 3 "zero.svm:1:3:" "numbered from 1"
  linblock pack good.svm -o u -q
  run linblock append u zero.svm
  expect 3 "zero.svm:1:3:"
}

@test "damage is found, named, and exit code 4" {
  linblock generate documents -o d.svm --rows 300 --features 1000 -q
  linblock pack d.svm -o s -q --codec none
  printf '\377' | dd of=s/segment-000001.rows bs=1 seek=5000 conv=notrunc status=none
  run linblock verify s
  expect 4 "segment-000001.rows" "chunk 0" "checksum does not match"
  run linblock unpack s
  expect 4 "segment-000001.rows"
}

@test "unpack to a closed pipe ends without a word" {
  linblock generate documents -o d.svm --rows 3000 --features 1000 -q
  linblock pack d.svm -o s -q
  linblock unpack s 2>err | head -1 >first
  [ -s first ]
  [ ! -s err ]
}

@test "Ctrl-C while packing leaves nothing behind" {
  mkfifo pipe
  "$LINBLOCK" pack pipe -o s 2>err &
  pid=$!
  exec 7>pipe
  for i in $(seq 20000); do echo "1 1:1 2:2 3:3 4:4"; done >&7
  kill -INT $pid || kill -TERM $pid
  (for i in $(seq 200000); do echo "1 1:1 2:2 3:3 4:4" 2>/dev/null || break; done >&7) 2>/dev/null || true
  exec 7>&-
  status=0
  wait $pid || status=$?
  [ "$status" -eq 130 ]
  [ ! -e s ]
  [ ! -e s.partial ]
}
