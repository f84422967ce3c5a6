# Labels that are words, through every command.
load helpers

# 60 rows of three classes; each class has a feature of its own, and some noise.
three_classes() {
  local i word words=(spam ham eggs)
  for ((i = 0; i < 60; ++i)); do
    word=${words[$((i % 3))]}
    echo "$word $((i % 3 + 1)):1 $((4 + i % 5)):0.$((i % 7 + 1))"
  done
}
two_classes() { three_classes | grep -v eggs; }

@test "pack keeps words, and unpack writes them back" {
  three_classes >words.svm
  run linblock pack words.svm -o s
  expect 0 "labels are words, as in the first row: spam, ham, eggs"
  [ "$(linblock info s --json | jq -c .labels)" = '{"spam":20,"ham":20,"eggs":20}' ]
  run linblock info s
  expect 0 "spam 20 rows (33.33%)" "format version 2"
  linblock unpack s -o again.svm -q
  cmp words.svm again.svm
  linblock pack again.svm -o t -q
  cmp s/MANIFEST t/MANIFEST
  run linblock verify s
  expect 0
  linblock pack good.svm -o numbers -q
  run linblock info numbers
  expect 0 "format version 1"
}

@test "the same words make the same bytes with 1 and 3 threads" {
  for i in $(seq 400); do three_classes; done | awk '{ $1 = $1 "-" (NR * NR % 101); print }' >words.svm
  linblock pack words.svm -o one --codec lz4 --threads 1 -q
  linblock pack words.svm -o three --codec lz4 --threads 3 -q
  for file in MANIFEST FEATURES segment-000001.rows segment-000001.directory; do cmp one/$file three/$file; done
}

@test "rows with new words are appended, removed and compacted" {
  two_classes >words.svm
  linblock pack words.svm -o s -q
  printf 'eggs 3:1\nham 2:1\n' >more.svm
  linblock append s more.svm -q
  [ "$(linblock info s --json | jq -c .labels)" = '{"spam":20,"ham":21,"eggs":1}' ]
  echo 40 >ids
  linblock remove s --rows ids -q
  [ "$(linblock info s --json | jq -c .labels)" = '{"spam":20,"ham":21}' ]
  linblock compact s -q
  run linblock verify s
  expect 0
  [ "$(linblock unpack s | tail -n 1)" = "ham 2:1" ]
  linblock transpose s -q
  linblock index s -q
  run linblock verify s
  expect 0
  [ "$(linblock info s/index --json | jq -c .labels)" = '{"spam":20,"ham":21}' ]
}

@test "words among numbers are refused, and say what helps" {
  linblock pack good.svm -o s -q
  printf 'spam 1:1\n' >words.svm
  run linblock append s words.svm
  expect 3 "words.svm:1:1: the label 'spam' is not a number: labels are all numbers or all words" "sed 's/^spam /1 /'"
  printf '1:0.5 2:1\n' >none.svm
  run linblock pack none.svm -o t
  expect 3 "the label is missing"
  printf 'spam 1:1\na,b 1:1\n' >comma.svm
  run linblock pack comma.svm -o t
  expect 3 "comma.svm:2:1: 'a,b' cannot be a label: it has a ','"
  linblock pack comma.svm -o t --max-bad-rows 1 --rejects bad -q
  [ "$(cat bad)" = "a,b 1:1" ]
}

@test "of two words, the one that sorts last is the positive class" {
  two_classes >words.svm
  tac words.svm >other.svm
  for text in words other; do
    linblock train $text.svm -o $text -q
    run linblock weights $text
    expect 0 "class spam (above 0) against ham (below 0)"
  done
  sed 's/^spam /1 /; s/^ham /-1 /' words.svm >numbers.svm
  linblock train numbers.svm -o numbers -q
  diff <(sed '1,/^w/d; /^#/d' words) <(sed '1,/^w/d; /^#/d' numbers)
}

@test "train, evaluate, predict and weights use words" {
  three_classes >words.svm
  run linblock train words.svm -o m
  expect 0 "liblinear-predict knows labels as numbers, and with this model it writes 0 for spam, 1 for ham, 2 for eggs"
  [ "$(sed -n 3p m)" = "label 0 1 2" ]
  [ "$(jq -c '[.labels, .tasks[2].label]' m.json)" = '[["spam","ham","eggs"],"eggs"]' ]
  run linblock evaluate m words.svm
  expect 0 "accuracy 100.00% (60 of 60)" "(always spam)" "     predicted" "  label      spam       ham      eggs"
  [ "$(linblock evaluate m words.svm --json | jq -c '[.per_class.ham.rows, .confusion[0]]')" = \
    '[20,{"label":"spam","predicted":"spam","rows":20}]' ]
  [ "$(linblock evaluate m words.svm.linblock --json -q | jq ".accuracy == 1")" = true ]
  [ "$(linblock predict m words.svm | head -n 3 | tr '\n' ' ')" = "spam ham eggs " ]
  [ "$(cut -d' ' -f2- words.svm | linblock predict m - | sort | uniq -c | tr -s ' ' | tr '\n' ',')" = " 20 eggs, 20 ham, 20 spam," ]
  [ "$(linblock weights m --top 1 --as csv | cut -d, -f1,2 | tr '\n' ' ')" = "class,feature spam,1 ham,2 eggs,3 " ]
  [ "$(linblock weights m --as json | jq -c '[.labels, .classes[1].label]')" = '[["spam","ham","eggs"],"ham"]' ]
  linblock train words.svm -o p --loss logistic -q
  [ "$(linblock predict p words.svm --probability | head -n 1)" = "labels spam ham eggs" ]
  [ "$(linblock train words.svm -o m --json -q | jq -c '[.tasks[].label]')" = '["spam","ham","eggs"]' ]
}

@test "words that the model does not know are reported" {
  two_classes >words.svm
  linblock train words.svm -o m -q
  printf 'eggs 1:1\nspam 1:1\neggs 2:1\n' >new.svm
  run linblock evaluate m new.svm
  expect 0 "2 rows have a label that the model does not know, such as eggs (it knows spam, ham), and count as wrong"
  linblock train good.svm -o numbers -q
  run linblock evaluate numbers new.svm
  expect 3 "'eggs' is not a number"
}

@test "--positive and --class-weight take words" {
  three_classes >words.svm
  linblock train words.svm -o m --positive eggs --class-weight eggs=3,spam=0.5 -q
  run linblock weights m
  expect 0 "class eggs (above 0) against all others (below 0)"
  run linblock evaluate m words.svm
  expect 0 "not-eggs         40"
  run linblock train words.svm -o m --positive bacon
  expect 3 "--positive bacon: no row has this label"
  run linblock train words.svm -o m --class-weight bacon=2
  expect 3 "--class-weight bacon=2: no row has this label"
  run linblock train good.svm -o n --positive spam
  expect 3 "--positive spam: no row has this label" "linblock info"
  run linblock train words.svm -o m --class-weight spam
  expect 2 "LABEL=WEIGHT"
}

@test "cv and tune use words" {
  three_classes >words.svm
  run linblock cv words.svm --folds 3 -q
  expect 0 "(always spam)" "  label      spam       ham      eggs"
  [ "$(linblock cv words.svm --folds 3 --json -q | jq -c '.per_class | keys')" = '["eggs","ham","spam"]' ]
  run linblock tune words.svm --costs 0.1,1 --folds 3 --positive ham -o m
  expect 0 "best cost"
  run linblock weights m
  expect 0 "class ham (above 0)"
}

@test "every method for several classes uses words" {
  three_classes >words.svm
  linblock pack words.svm -o s -q
  for options in "--multiclass crammer-singer" "--multiclass softmax" "--solver newton" "--solver primal" "--solver cmls" \
    "--solver indexed" "--truncate 1"; do
    linblock train s -o m $options -q
    run linblock evaluate m words.svm
    expect 0 "accuracy 100.00% (60 of 60)"
  done
}

@test "convert, diff and a warm start keep words" {
  two_classes >words.svm
  linblock train words.svm -o m --keep-state -q
  linblock convert m -o binary -q
  linblock convert binary -o text -q
  cmp m text
  [ "$(linblock predict binary words.svm | head -n 1)" = spam ]
  tac words.svm >other.svm
  linblock train other.svm -o n -q --tolerance 1e-4
  run linblock diff m n words.svm
  expect 0 "class spam: cosine 0.99" "0 of 40 rows get another label" "accuracy 100.00% to 100.00%"
  [ "$(linblock diff m n --json | jq -c '.classes[0].label')" = '"spam"' ]
  run linblock train other.svm -o w --warm m --solver newton
  expect 0 "starting from the weights of 'm'"
  printf 'eggs 3:1\neggs 3:2\n' >more.svm
  linblock append words.svm.linblock more.svm -q
  run linblock train words.svm.linblock -o later --warm m --keep-state
  expect 0 "starting from 'm': 40 rows keep their duals, 2 are new"
  run linblock weights later --top 1 --as csv
  expect 0 "eggs,"
}

@test "test rows have words too" {
  two_classes >words.svm
  run linblock train words.svm -o m --test words.svm
  expect 0 "test accuracy 100.00% (40 rows)"
}

@test "damaged and forged names are refused" {
  two_classes >words.svm
  linblock pack words.svm -o s -q
  linblock train s -o m -q
  sed -i 's/spam ham/spam hat/' s/MANIFEST
  run linblock info s
  expect 4 "its checksum does not match"
  sed -i 's/spam ham/spam hat/' m
  run linblock predict m words.svm
  expect 4 "its checksum does not match"
}

@test "the names of very many labels count against the memory limit" {
  seq 1 65000 | awk '{ printf "word-%011d 1:1\n", $1 }' >many.svm  # nearly the most, in number and in bytes
  run linblock pack many.svm -o s --memory 16M
  expect 6 "labels do not fit in --memory 16 MB" "Give --memory 40M or more"
  [ ! -e s ]
  peak=$(linblock pack many.svm -o s --memory 40M --json -q | jq .peak_memory_bytes)
  [ -n "$LINBLOCK_SANITIZE" ] || [ "$peak" -le $((40 << 20)) ]
  [ "$(linblock info s --json | jq '.labels | length')" -eq 65000 ]
}

@test "a label in quotes is refused, with what to do" {
  printf '"spam" 1:3\n' >quotes.svm
  run linblock pack quotes.svm -o s
  expect 3 "quotes.svm:1:1" "a label that is a word has no quotes; remove them"
}
