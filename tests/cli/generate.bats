load helpers

@test "each kind makes text that packs" {
  for kind in documents dense clusters; do
    run linblock generate $kind -o $kind.svm --rows 500 --features 60 --nonzeros 20 --classes 3
    expect 0 "wrote 500 rows" "next: linblock pack $kind.svm"
    linblock pack $kind.svm -o $kind.store -q
    linblock info $kind.store | grep -q "labels      3"
  done
}

@test "the same options make the same bytes, for any number of threads" {
  linblock generate documents -o a.svm --rows 2000 -q --threads 1
  linblock generate documents -o b.svm --rows 2000 -q --threads 3
  cmp a.svm b.svm
  linblock generate documents -o c.svm --rows 2000 -q --seed 2
  ! cmp -s a.svm c.svm
}

@test "--sorted puts labels in order" {
  linblock generate dense -o - --rows 1000 --features 3 --classes 4 --sorted | cut -d' ' -f1 | sort -nc
}

@test "options that make no sense are refused" {
  run linblock generate documents -o x --rows 0
  expect 2 "--rows"
  for option in --rows --features --nonzeros --classes --skip --seed; do
    run linblock generate documents -o x $option=many
    expect 2 "$option 'many' is not a whole number from 0"
  done
  run linblock generate documents -o x --noise much
  expect 2 "--noise 'much' is not a number from 0 up"
  run linblock generate documents -o x --noise 2
  expect 2 "--noise"
  run linblock generate pictures -o x
  expect 2 "'pictures' is not a kind of data"
  [ ! -e x ]
}
