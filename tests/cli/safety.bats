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
  expect 2 "--checkpoint: '.' is where 'model' is written"
  (cd home && run linblock train ../rows.svm -o ../model --checkpoint . && expect 2 "cannot be used as a checkpoint")
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

@test "what a command refuses to overwrite it does not delete either" {
  rows
  linblock pack rows.svm -o s -q
  echo mine >s/segment-000002.rows
  run linblock append s rows.svm
  expect 2 "s/segment-000002.rows' exists, and linblock did not write it"
  [ "$(cat s/segment-000002.rows)" = mine ]
  rm s/segment-000002.rows
  echo mine >s/removed-000001
  run bash -c "echo 3 | $LINBLOCK remove s --rows -"
  expect 2 "did not write it"
  [ "$(cat s/removed-000001)" = mine ]
  mkdir s/columns
  echo mine >s/columns/FEATURES
  run linblock transpose s
  expect 2 "did not write it"
  [ "$(cat s/columns/FEATURES)" = mine ]
  mkdir s/index
  echo mine >s/index/forest-000001
  run linblock index s
  expect 2 "did not write it"
  [ "$(cat s/index/forest-000001)" = mine ]
  linblock verify s
}

@test "a store is not named like an unfinished one, which the next pack would delete" {
  rows
  run linblock pack rows.svm -o s.partial
  expect 2 "is how linblock names an unfinished store"
  [ ! -e s.partial ]
}

@test "columns and index that are links or other stores are not written" {
  rows
  linblock pack rows.svm -o a -q
  linblock pack rows.svm -o b -q
  ln -s ../b a/columns
  ln -s ../b a/index
  run linblock transpose a --force
  expect 2 "'a/columns' is a symbolic link"
  run linblock index a --force
  expect 2 "'a/index' is a symbolic link"
  linblock verify b
  rm a/columns a/index
  run linblock pack rows.svm -o a/columns
  expect 2 "is in a store"
  mv b a/columns
  run linblock transpose a --force
  expect 2 "'a/columns' is a store of rows"
  linblock verify a/columns
}

@test "a file on standard input is an input too" {
  rows
  linblock train rows.svm -o m -q
  cp rows.svm in.svm
  run bash -c "$LINBLOCK predict m - -o in.svm <in.svm"
  expect 2 "'in.svm' is read by this command"
  run bash -c "$LINBLOCK pack - -o s --max-bad-rows 2 --rejects in.svm <in.svm"
  expect 2 "'in.svm' is read by this command"
  cmp rows.svm in.svm
}

@test "files that only begin a little like linblock's are somebody's" {
  rows
  linblock train rows.svm -o m --trace trace -q
  head -c 1024 /dev/zero >image
  echo mine >>image
  echo '{"event":"login","user":"bob"}' >log.jsonl
  printf '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8"><title>thesis</title>' >p.html.new
  mkdir ck
  echo mine >ck/STATE.v2
  echo mine >rows.svm.linblock/spill-20240101
  echo 'process data' >pm.lock
  md5sum image log.jsonl p.html.new ck/STATE.v2 rows.svm.linblock/spill-20240101 pm.lock >sums
  run linblock train rows.svm -o image
  expect 2 "is no model"
  run linblock train rows.svm -o m --trace log.jsonl
  expect 2 "is no trace"
  run linblock report trace -o p.html
  expect 2 "did not write it"
  run linblock train rows.svm -o m --checkpoint ck
  expect 2 "did not write 'ck/STATE.v2'"
  run linblock train rows.svm -o pm
  expect 2 "did not write it"
  rows rows.svm 410
  run linblock train rows.svm -o m
  expect 2 "did not write"
  md5sum -c sums
}

@test "models are not named like parts of models, and links to them are not replaced" {
  rows
  linblock train rows.svm -o m -q
  for name in m.new m.json m.state m.lock; do
    run linblock train rows.svm -o $name
    expect 2 "ends as a file that linblock writes beside a model"
  done
  ln -s m link
  run linblock train rows.svm -o link
  expect 2 "'link' is a symbolic link"
  [ -L link ]
  run linblock train rows.svm -o ""
  expect 2 "--output is empty"
}

@test "outputs, the store and the checkpoint are in different places" {
  rows
  run linblock pack rows.svm -o s --rejects s --max-bad-rows 1
  expect 2 "is where 's' is written"
  [ ! -e s ]
  linblock pack rows.svm -o s -q
  run linblock train rows.svm --store m -o m
  expect 2 "--store: 'm' is where 'm' is written"
  run linblock train rows.svm -o rows.svm.linblock
  expect 2 "is where"
  run linblock train rows.svm -o ck/m --checkpoint ck
  [ "$status" -ne 0 ]
  ln -s w2 w3
  run linblock unpack s -o w2 --weights w3
  expect 2 "leads nowhere"
}

@test "a file that appears while a model is trained is not replaced" {
  rows
  linblock pack rows.svm -o s -q
  "$LINBLOCK" train s -o tm -q --tolerance 1e-16 --max-passes 1000000000 --max-seconds 2 --solver dual 2>said &
  training=$!
  sleep 0.7
  echo mine >tm
  code=0
  wait $training || code=$?
  [ $code -eq 2 ]
  grep -q "'tm' exists, and linblock did not write it" said
  [ "$(cat tm)" = mine ]
}

@test "a model is called saved when it is" {
  rows
  linblock pack rows.svm -o s -q
  linblock train s -o m -q
  LINBLOCK_HOOK=EIO:rename:1 LINBLOCK_HOOK_PATH=m.json run "$LINBLOCK_HOOKED" train s -o m --loss hinge
  expect 5 "the model is saved in 'm'"
  [[ "$output" != *"could not be saved"* ]]
  run linblock predict m rows.svm -o answers
  expect 0 "does not describe 'm'"
}

@test "empty directories of the user stay, and a state of an older model goes" {
  rows
  mkdir ck
  linblock train rows.svm -o m --checkpoint ck --keep-state -q
  [ -d ck ]
  [ -e m.state ]
  linblock train rows.svm -o m --loss hinge -q
  [ ! -e m.state ]
}

@test "rows that were appended are not lost with a SOURCE that does not name its store" {
  rows
  linblock train rows.svm -o m -q
  linblock append rows.svm.linblock rows.svm -q
  : >rows.svm.linblock/SOURCE
  run linblock train rows.svm -o m
  expect 2 "rows were appended to 'rows.svm.linblock'"
  [ "$(linblock info rows.svm.linblock --json | jq .rows)" = 800 ]
}

@test "a file that may not grow is an error as a full disk is" {
  rows rows.svm 4000
  linblock pack rows.svm -o s -q
  run bash -c "ulimit -f 1; $LINBLOCK train s -o fz"
  expect 5 "File too large"
}
