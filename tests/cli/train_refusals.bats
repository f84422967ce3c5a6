# What train refuses: before any packing, with a sentence, and leaving nothing behind.
load helpers

# refused CODE OPTIONS... -- WORDS...: nothing was packed, and nothing is left.
refused() {
  local code=$1 options=() entries
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  [[ " ${options[*]} " == *" -o "* ]] || options+=(-o m)
  run linblock train good.svm "${options[@]}" </dev/null
  expect "$code" "$@" || return 1
  entries=$(ls)
  if [ "$entries" != "$before" ]; then
    echo "there was: $before; now there is: $entries"
    return 1
  fi
}

@test "paths that cannot work are refused before packing" {
  mkdir folder
  before=$(ls)
  refused 3 --test absent.svm -- "--test: there is no 'absent.svm'"
  refused 3 --test folder -- "'folder' is a folder and not a store"
  refused 2 --test - -- "--test is read again after each pass" "standard input"
  refused 5 --trace absent/trace.jsonl -- "--trace" "the directory 'absent' does not exist"
  refused 2 --trace folder -- "--trace: 'folder' is a directory"
  refused 2 -o folder -- "--output: 'folder' is a directory"
  refused 5 -o absent/m -- "--output" "the directory 'absent' does not exist"
}

@test "a model without a state to go on from is refused before packing" {
  linblock train good.svm -o stateless -q
  rm -r good.svm.linblock
  before=$(ls)
  for model in absent stateless; do
    refused 3 --warm $model -- "--warm: there is no '$model.state'" "Train that model with --keep-state"
  done
}

@test "solvers that cannot work are refused before packing" {
  before=$(ls)
  refused 2 --solver newtron -- "--solver 'newtron' is not dual, pegasos, average, subsample, newton"
  for solver in newton primal; do
    refused 2 --solver $solver --keep-state -- "$solver needs no state"
  done
  refused 2 --solver primal --loss hinge -- "primal needs a smooth loss" "--loss squared-hinge"
  refused 2 --solver cmls --loss hinge -- "cmls needs the squared hinge" "--loss squared-hinge"
  refused 2 --solver cmls --keep-state -- "cmls needs no state"
  refused 2 --solver cmls --loss logistic -- "use --solver dual, average, subsample, newton or primal"
  refused 2 --huber 0.1 --loss hinge -- "--huber is for --loss huber-hinge, and hinge has no such choice"
  refused 2 --solver cmls --order once -- "--order cyclic or permuted"
  refused 2 --order sideways -- "--order 'sideways' is not permuted, cyclic, once or online"
  refused 2 --solver newton --order cyclic -- "--order is for --solver primal and cmls"
  refused 2 --solver cmls --exponential fast -- "--exponential is for --solver primal"
  refused 2 --solver pegasos --loss logistic -- "pegasos needs a loss that is zero beyond the margin, and logistic is none"
}

@test "crammer-singer takes no other loss, no single label and no other solver" {
  before=$(ls)
  refused 2 --multiclass both -- "--multiclass 'both' is not one-vs-rest, crammer-singer or softmax"
  refused 2 --multiclass crammer-singer --loss logistic -- "has a loss of its own. Leave out --loss."
  refused 2 --multiclass crammer-singer --positive 1 -- "Leave out --positive."
  for option in "--cache-fraction 0.5" "--inner 2" "--schedule fixed" "--blocks 2" "--solver pegasos" "--step 2" "--order once"; do
    refused 2 --multiclass crammer-singer $option -- "Leave out ${option% *}."
  done
  run linblock train good.svm -o m --multiclass crammer-singer --loss hinge --solver dual
  expect 0 "certified"
}

@test "softmax takes the logistic loss alone, which need not be named" {
  before=$(ls)
  refused 2 --multiclass softmax --loss hinge -- "has a loss of its own. Leave out --loss."
  refused 2 --multiclass softmax --calibrate 0.2 -- "a logistic model has probabilities of its own"
  refused 2 --multiclass softmax --keep-state -- "softmax needs no state"
  run linblock train good.svm -o m --multiclass softmax
  expect 0 "certified"
  run linblock train good.svm -o m --multiclass softmax --loss logistic --free-bias --warm m
  expect 0 "starting from the weights of 'm'"
}

@test "options that would be ignored are refused" {
  before=$(ls)
  refused 2 --blocks 3 -- "--blocks needs --schedule fixed"
  refused 2 --blocks 3 --schedule recomposed -- "--blocks needs --schedule fixed"
  refused 2 --block-order sequential -- "--block-order needs --schedule fixed"
  refused 2 --step 5 -- "--step is for --solver pegasos"
  for option in "--cache-fraction 0.5" "--inner 2" "--schedule fixed" "--blocks 2" "--block-order permuted"; do
    for solver in pegasos average subsample; do
      refused 2 --solver $solver $option -- "${option% *} is for --solver dual, and $solver"
    done
  done
  run linblock train good.svm -o m --schedule fixed --blocks 1 --block-order sequential --inner 2 --cache-fraction 0
  expect 0 "certified"
  run linblock train good.svm -o m --solver pegasos --step 2 --max-passes 2
  expect 0 "not converged: pegasos computes no bound"
}

@test "a number of passes that is none is refused" {
  before=$(ls)
  for passes in 0 -3 many 1.5 99999999999; do
    refused 2 --max-passes=$passes -- "--max-passes '$passes' is not a whole number from 1"
  done
}

@test "what is not a number is refused in words that name the option" {
  before=$(ls)
  for text in x 1.5 0x10 -1 99999999999999999999; do
    for option in --seed --threads --blocks --max-bad-rows; do
      refused 2 $option="$text" -- "$option '$text' is not " "a whole number from"
    done
  done
  refused 2 --blocks 0 --schedule fixed -- "--blocks '0' is not auto or a whole number from 1 up"
  refused 2 --threads 1025 -- "--threads '1025' is not a whole number from 1 to 1024"
  refused 2 --positive=a:b -- "--positive 'a:b' is not a label: a number or a word"
  for text in x -1 nan inf; do
    refused 2 --checkpoint-seconds=$text -- "--checkpoint-seconds '$text' is not a number from 0 up"
  done
  run linblock train good.svm -o m --positive +1 --seed 18446744073709551615 --checkpoint-seconds 0
  expect 0 "certified"
  run linblock train good.svm -o m --positive -1
  expect 0 "certified"
}

@test "training that fails leaves no empty checkpoint folder" {
  linblock pack good.svm -o s -q
  run linblock train s -o m --positive 9
  expect 3 "no row has this label"
  [ ! -e m.checkpoint ]
  run linblock train s -o m --checkpoint c --class-weight 7=2
  expect 3 "no row has this label"
  [ ! -e c ]
  run linblock train absent.svm -o m
  expect 3 "'absent.svm' does not exist"
  [ ! -e m.checkpoint ]
}

@test "a model that cannot be saved leaves no half of it, and the same command resumes" {
  linblock generate documents -o train.svm --rows 5000 --features 500 --nonzeros 20 -q
  linblock pack train.svm -o s -q --chunk-bytes 16K
  options="--tolerance 1e-4 --inner 1 --checkpoint-seconds 0"
  linblock train s -o whole $options -q
  export LINBLOCK_HOOK=ENOSPC:write:0 LINBLOCK_HOOK_PATH=m.new
  run "$LINBLOCK_HOOKED" train s -o m $options
  expect 5 "disk is full" "The model could not be saved" "the same command resumes from its checkpoint"
  [ ! -e m.new ]
  [ ! -e m ]
  run linblock train s -o m $options
  expect 0 "resuming from the checkpoint" "converged: gap"
  cmp whole m
  [ ! -e m.checkpoint ]
}

@test "weights of all classes that do not fit in memory are refused with the numbers" {
  printf '1 1:1\n2 2:1\n3 2000000:1\n4 3:1\n' >wide.svm
  run linblock train wide.svm -o m --multiclass crammer-singer --memory 32M
  expect 6 "weights of 2,000,001 features for each of 4 classes 31 MB" "--memory allows 32 MB"
  run linblock train wide.svm -o m --multiclass crammer-singer --memory 64M
  expect 0 "certified"
  [ "$(sed -n 2p m)" = "nr_class 4" ]
}

@test "a disk that delivers nothing and batches of no size are refused" {
  run linblock train good.svm -o model --disk-rate 0
  expect 2 "--disk-rate must be at least 1 byte per second"
  run linblock train good.svm -o model --batch 0
  expect 2 "--batch '0' is not auto or a whole number from 1 to 512"
  run linblock train good.svm -o model --solver newton --batch 8
  expect 2 "--batch is for --solver dual"
}

@test "softmax is refused with a solver beside it, dual too" {
  run linblock train good.svm -o m --multiclass softmax --solver dual
  expect 2 "--multiclass softmax is a solver of its own" "eave out --solver"
  linblock train good.svm -o m --multiclass softmax -q
}
