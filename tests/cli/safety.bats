# Nothing of the user's is lost: what linblock did not write is neither deleted nor overwritten.
load helpers

rows() { linblock generate documents -o "${1:-rows.svm}" --rows "${2:-400}" --features 500 --nonzeros 10 -q; }

@test "a checkpoint directory with anything else in it is refused, and nothing in it is lost" {
  rows
  mkdir home
  echo thesis >home/thesis.txt
  cp rows.svm home/data.svm
  run linblock train rows.svm -o model --checkpoint home
  expect 2 "'home' cannot be used as a checkpoint" "home/data.svm" "--checkpoint"
  [ "$(cat home/thesis.txt)" = thesis ]
  cmp rows.svm home/data.svm
  [ ! -e model ]
  run linblock train rows.svm -o model --checkpoint .
  expect 2 "cannot be used as a checkpoint"
  [ -e rows.svm ]
  run linblock cv rows.svm --checkpoint home
  expect 2 "cannot be used as a checkpoint"
  run linblock tune rows.svm --checkpoint home
  expect 2 "cannot be used as a checkpoint"
  [ "$(ls home)" = "$(printf 'data.svm\nthesis.txt')" ]
}

@test "MODEL.checkpoint that was there before is not deleted" {
  rows
  mkdir model.checkpoint
  echo mine >model.checkpoint/STATE
  run linblock train rows.svm -o model
  expect 2 "linblock did not write 'model.checkpoint/STATE'"
  [ "$(cat model.checkpoint/STATE)" = mine ]
  rm model.checkpoint/STATE
  linblock train rows.svm -o model -q
  [ ! -e model.checkpoint ]
}

@test "train replaces its own store, but not with somebody's files in it" {
  rows
  linblock train rows.svm -o model -q
  echo notes >rows.svm.linblock/notes.txt
  rows rows.svm 500
  run linblock train rows.svm -o model
  expect 2 "linblock did not write 'rows.svm.linblock/notes.txt'"
  [ "$(cat rows.svm.linblock/notes.txt)" = notes ]
  linblock verify rows.svm.linblock
  rm rows.svm.linblock/notes.txt
  linblock train rows.svm -o model -q
  linblock verify rows.svm.linblock
  [ ! -e rows.svm.linblock.partial ]
}

@test "a directory in the place of STORE.partial is not emptied" {
  rows
  mkdir s.partial
  echo notes >s.partial/notes.txt
  run linblock pack rows.svm -o s
  expect 2 "linblock did not write 's.partial/notes.txt'"
  [ "$(cat s.partial/notes.txt)" = notes ]
}

@test "no output takes the place of what its command reads" {
  rows
  linblock train rows.svm -o m --loss logistic -q
  cp m m.copy
  cp m.json json.copy
  run linblock predict m rows.svm -o m.json
  expect 2 "'m.json' is read by this command"
  cmp m.json json.copy
  linblock pack rows.svm -o s -q
  cp s/MANIFEST manifest.copy
  run linblock unpack s -o s/MANIFEST
  expect 2 "is read by this command"
  run linblock unpack s -o text --weights s/FEATURES
  expect 2 "is read by this command"
  run linblock predict m s -o s/MANIFEST
  expect 2 "is read by this command"
  cmp s/MANIFEST manifest.copy
  run linblock unpack s -o both --weights both
  expect 2 "is written by another option"
}

@test "no output takes the place of a model or of a store's files" {
  rows
  linblock train rows.svm -o m --keep-state -q
  linblock pack rows.svm -o s -q
  linblock pack rows.svm -o other -q
  cp m m.copy
  for output in m m.json m.state s/MANIFEST s/LOCK; do
    run linblock unpack other -o "$output"
    expect 2 "choose another"
  done
  cmp m m.copy
  linblock verify s
  run linblock generate documents -o m --rows 5
  expect 2 "choose another"
  run linblock pack rows.svm -o third --max-bad-rows 1 --rejects m
  expect 2 "choose another"
  cmp m m.copy
}

@test "names that train makes up never take the place of somebody's files" {
  rows
  for name in m5.new m5.json m5.state m5.lock m5.json.new; do
    echo mine >"$name"
    run linblock train rows.svm -o m5 --keep-state
    expect 2 "'$name'" "linblock did not write it"
    [ "$(cat "$name")" = mine ]
    rm "$name"
  done
  [ ! -e m5 ]
  echo '<p>mine</p>' >page.html
  linblock train rows.svm -o m5 --trace trace -q
  run linblock report trace -o page.html
  expect 2 "is no report of linblock"
  linblock report trace -o report.html -q
  linblock report trace -o report.html -q
}

@test "a model or a page never takes the place of a device or a pipe" {
  rows
  mkfifo pipe
  linblock train rows.svm -o m --trace trace -q
  run linblock train rows.svm -o pipe
  expect 2 "'pipe' is a device or a pipe"
  run linblock tune rows.svm --costs 1,2 -o pipe
  expect 2 "'pipe' is a device or a pipe"
  run linblock report trace -o pipe
  expect 2 "'pipe' is a device or a pipe"
  [ -p pipe ]
  [ -z "$(ls | grep '^pipe.')" ]
}

@test "a link that was planted in a store is not written through" {
  rows
  linblock pack rows.svm -o s -q
  echo victim >victim
  ln -s ../victim s/MANIFEST.new
  run linblock append s rows.svm
  expect 2 "'s/MANIFEST.new' is a symbolic link"
  [ "$(cat victim)" = victim ]
  rm s/MANIFEST.new
  ln -s ../victim s/segment-000002.rows
  run linblock append s rows.svm
  expect 2 "is a symbolic link"
  [ "$(cat victim)" = victim ]
  ln -sf "$PWD/victim" m.new
  run linblock train rows.svm -o m
  [ "$status" -eq 2 ]
  [ "$(cat victim)" = victim ]
}

@test "a model is one file: it predicts the same without its JSON, and a changed digit is found" {
  linblock generate documents -o zero.svm --rows 300 --features 50 --nonzeros 6 -q
  sed -i 's/^\([^ ]*\) /\1 0:0.5 /' zero.svm
  linblock train zero.svm -o m --normalize --calibrate 0.2 -q
  linblock predict m zero.svm -o with --probability -q
  mkdir elsewhere
  cp m elsewhere/m
  linblock predict elsewhere/m zero.svm -o without --probability -q
  cmp with without
  echo '{"program": "linblock", "index_base": 1, "normalized": false, "against_rest": false}' >m.json
  run linblock predict m zero.svm -o damaged --probability
  expect 0 "'m.json' does not describe 'm'"
  cmp with damaged
  sed '7s/[1-8]/9/' m >flipped
  run linblock predict flipped zero.svm
  expect 4 "checksum does not match"
  head -n -2 m >cut
  run linblock predict cut zero.svm
  expect 4 "cut short or changed"
}

@test "a second training of the same model is refused at once" {
  rows
  printf 'process 1 (training)' >m.lock
  run flock m.lock "$LINBLOCK" train rows.svm -o m
  expect 5 "'m' is in use by process 1 (training)"
  linblock train rows.svm -o m -q
  [ ! -e m.lock ]
}

@test "a log that cannot be written does not end the work" {
  rows
  linblock train rows.svm -o normal --inner 2 --solver dual -q
  linblock train rows.svm -o full --inner 2 --solver dual 2>/dev/full
  linblock train rows.svm -o closed --inner 2 --solver dual 2>&-
  cmp normal full
  cmp normal closed
  run bash -c "$LINBLOCK train nothing.svm -o x 2>/dev/full"
  [ "$status" -eq 3 ]
}

@test "a result that cannot be written is exit code 5" {
  rows
  linblock train rows.svm -o m -q
  linblock pack rows.svm -o s -q
  for command in "evaluate m rows.svm" "evaluate m rows.svm --json" "info s" "info s --json" "tune rows.svm --costs 1,2" \
    "cv rows.svm" "cv rows.svm --json" "train rows.svm -o n --json" "predict m rows.svm" "unpack s" \
    "--help" "train --help" "--version"; do
    run bash -c "$LINBLOCK $command -q >/dev/full || $LINBLOCK $command >/dev/full"
    if [ "$status" -ne 5 ]; then
      echo "$command: exit code $status: $output"
      return 1
    fi
  done
}

@test "a closed standard input is empty, and no other file takes its place" {
  run bash -c "$LINBLOCK pack - -o s <&-"
  expect 3 "no rows"
  [ ! -e s ]
}

@test "file names that are not UTF-8 are written in JSON" {
  name=$(printf 'r\xffws.svm')
  rows "$name"
  linblock pack "$name" -o "$(printf 's\xff')" --json | jq -e .rows
  linblock train "$name" -o "$(printf 'm\xff')" --json -q | jq -e .rows
  linblock info "$(printf 's\xff')" --json | jq -e .rows
}

@test "packing the same text again makes the same store, byte for byte" {
  linblock generate documents -o rows.svm --rows 5000 -q
  linblock pack rows.svm -o a -q --codec auto
  linblock pack rows.svm -o b -q --codec "$(linblock info a --json | jq -r .codec)"
  linblock pack rows.svm -o c -q --codec auto
  if [ "$(linblock info a --json | jq -r .codec)" = "$(linblock info c --json | jq -r .codec)" ]; then
    cmp a/MANIFEST c/MANIFEST
  fi
  cmp a/segment-000001.rows b/segment-000001.rows
  linblock info a | grep -q "chosen by measuring the disk and the codecs: the disk reads"
}

@test "a compact that was killed after its commit is cleaned up by the next one" {
  rows
  linblock pack rows.svm -o s -q
  linblock append s rows.svm -q
  cp s/segment-000001.rows old
  linblock compact s -q
  cp old s/segment-000001.rows
  echo mine >s/removed-000009
  linblock compact s -q
  [ ! -e s/segment-000001.rows ]
  [ "$(cat s/removed-000009)" = mine ]
}

@test "a store without SOURCE, and one that a kill left half replaced, do not block train" {
  rows
  linblock train rows.svm -o m -q
  mv rows.svm.linblock rows.svm.linblock.partial
  linblock train rows.svm -o m -q
  linblock verify rows.svm.linblock
  [ ! -e rows.svm.linblock.partial ]
  [ -e rows.svm.linblock/SOURCE ]
  linblock pack rows.svm -o foreign -q
  run linblock train rows.svm -o m --store foreign
  expect 2 "was not made by train" "linblock train foreign"
}

@test "a transpose and an index that were killed after their commit are cleaned up by the next ones" {
  rows
  linblock pack rows.svm -o s -q
  for command in transpose index; do
    folder=$([ $command = transpose ] && echo s/columns || echo s/index)
    linblock $command s -q
    cp $folder/segment-000001.rows old
    linblock $command s --force -q
    cp old $folder/segment-000001.rows
    run linblock $command s
    expect 0 "nothing to do"
    [ ! -e $folder/segment-000001.rows ]
    [ -e $folder/segment-000002.rows ]
  done
}
