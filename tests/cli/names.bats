load helpers

names() { printf 'the\n\nof, "a" kind\n' >names.txt; }

@test "names come with the rows and stay in the store" {
  names
  run linblock pack good.svm -o s --names names.txt --json
  expect 0 "names: 2 for 3 features" '"named_features":2'
  run linblock info s
  expect 0 "names       2, of features up to 3" "format version 2"
  linblock append s good.svm -q
  linblock remove s --row-range 0-1 -q
  linblock compact s -q
  linblock snapshot s kept -q
  for store in s kept; do
    linblock verify $store -q
    linblock info $store --json | jq -e '.named_features == 2'
  done
  linblock pack good.svm -o plain -q
  linblock info plain --json | jq -e '.named_features == 0'
  run linblock info plain
  if [[ "$output" == *"  names"* ]]; then return 1; fi
}

@test "fewer and more names than features are told, and more are kept for later rows" {
  echo the >names.txt
  run linblock pack good.svm -o fewer --names names.txt
  expect 0 "names: 1 for 3 features; the last 2 have none"
  seq -f 'word %.0f' 5 >names.txt
  run linblock pack good.svm -o more --names names.txt
  expect 0 "names: 5 for 3 features; no row has a feature for the last 2 lines of the file"
  echo '1 5:3' >fifth.svm
  linblock append more fifth.svm -q
  linblock train more -o model --tolerance 1e-4 -q
  linblock weights model --as csv | grep -q ',5,.*,word 5$'
}

@test "a file that is no list of names is refused, and nothing is made" {
  printf 'a\nb\tc\n' >names.txt
  run linblock pack good.svm -o s --names names.txt
  expect 3 "names.txt:2: this is no name of a feature: it has a control character"
  run linblock pack good.svm -o s --names absent
  expect 3 "absent"
  run linblock pack - -o s --names - <good.svm
  expect 2 "--names"
  run linblock pack good.svm -o s --names names.txt --max-bad-rows 1 --rejects names.txt
  expect 2 "names.txt"
  [ ! -e s ]
}

@test "a model shows the names of its features, the same for any number of threads and in both forms" {
  names
  linblock pack good.svm -o s --names names.txt -q
  linblock train s -o model --threads 1 -q
  linblock train s -o model3 --threads 3 -q
  cmp model model3
  run linblock weights model
  expect 0 "  name" "  the" '  of, "a" kind'
  run linblock weights model --as csv
  expect 0 "class,feature,weight,name" ",the" ',"of, ""a"" kind"'
  linblock weights model --as json |
    jq -e '[.classes[0].weights[] | {(.feature | tostring): .name}] | add == {"1": "the", "2": null, "3": "of, \"a\" kind"}'
  linblock convert model -o binary -q
  linblock convert binary -o back -q
  cmp model back
  cmp <(linblock weights model) <(linblock weights binary)
  linblock train s -o direct --model-format binary -q
  cmp binary direct
  cmp <(linblock predict model good.svm) <(linblock predict binary good.svm)
  linblock train s -o other --cost 0.01 -q
  run linblock diff model other
  expect 0 "  name" "  the"
  linblock diff model other --json -q | jq -e '[.classes[0].changes[].name] | index("the") != null'
}

@test "text that is trained on takes names, and other names pack it anew" {
  names
  linblock train good.svm -o model --names names.txt -q
  run linblock train good.svm -o model --names names.txt
  expect 0 "made from this text before"
  echo other >names.txt
  run linblock train good.svm -o model --names names.txt
  expect 0 "packing anew"
  linblock weights model | grep -q '  other$'
  run linblock train good.svm.linblock -o model --names names.txt
  expect 2 "is a store, which takes --names of features when it is packed" "Leave out --names"
  linblock generate documents -o many.svm --rows 200 --features 50 --nonzeros 10 -q
  seq -f 'word %.0f' 50 >names.txt
  run linblock tune many.svm -o tuned --names names.txt --costs 0.1,1 --folds 2
  expect 0
  linblock weights tuned | grep -q '  word '
}

@test "a changed name is damage, in the store and in both forms of the model" {
  names
  linblock pack good.svm -o s --names names.txt -q
  linblock train s -o model -q
  linblock convert model -o binary -q
  for file in model binary; do
    sed "s|# 1 the|# 1 thx|" $file >changed
    grep -qa "# 1 thx" changed
    for command in "weights changed" "predict changed good.svm"; do
      run linblock $command
      expect 4 "its checksum does not match"
    done
  done
  sed -i 's/the/thx/' s/NAMES
  run linblock verify s
  expect 4 "s/NAMES" "its checksum does not match"
  run linblock train s -o again
  expect 4 "s/NAMES"
}

@test "more names than a model may have are left out, and take no memory" {
  awk 'BEGIN { for (row = 0; row < 2; ++row) { printf row ? "-1" : "1"; for (i = 1; i <= 17000; ++i) printf " %d:%d", i, 1 + row; print "" } }' >long.svm
  awk 'BEGIN { x = sprintf("%1000s", ""); gsub(" ", "x", x); for (i = 1; i <= 17000; ++i) print x i }' >long.txt
  linblock pack long.svm -o s --names long.txt --memory 64M -q
  linblock pack long.svm -o plain --memory 64M -q
  linblock train plain -o without --memory 64M -q
  run linblock train s -o model --memory 64M --json
  expect 0 "the model has no names of features: 17,000 features with a weight have one"
  cmp model without
  head -c 15000000 long.txt | head -n 14000 >fewer.txt
  linblock pack long.svm -o fewer --names fewer.txt --memory 16M --chunk-bytes 256K -q
  linblock train fewer -o model --memory 16M --json -q >summary.json
  [ -n "$LINBLOCK_SANITIZE" ] || jq -e ".peak_memory_bytes < 16 * 1048576" summary.json  # a sanitizer takes memory of its own
  [ "$(grep -c '^# [0-9]* x' model)" -eq 14000 ]
}
