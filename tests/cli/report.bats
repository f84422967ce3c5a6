load helpers

# A run and its trace: NAME OPTIONS...
trace() {
  linblock train "$folder/data.svm" -o "$1.model" --trace "$1.jsonl" --memory 16M --loss hinge -q --fresh "${@:2}"
}

# The data of a page, as a JSON file.
data_of() {
  python3 -c '
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
print(re.search(r"<script type=\"application/json\" id=\"data\">(.*?)</script>", page, re.S).group(1))' "$1" >data.json
}

made() {
  linblock generate documents -o data.svm --rows 2000 -q
  linblock generate documents -o test.svm --rows 500 --skip 2000 -q
}

@test "a trace becomes one page that names nothing outside itself" {
  made
  trace first --test test.svm
  run linblock report first.jsonl -o report.html
  expect 0 "wrote report.html: 1 run" "next:"
  grep -Eo '(src|href)="[^"]*"|url\([^)]*\)|https?://[^" ]*' report.html >named
  [ "$(sort -u named | tr '\n' ' ')" = 'href="data:," http://www.w3.org/2000/svg ' ]  # no icon, and the name of a language
  [ "$(stat -c %s report.html)" -lt 100000 ]
}

@test "the page has what the trace has: passes, certificate, plan and command" {
  made
  trace first --test test.svm --tolerance 0.001
  linblock report first.jsonl -o report.html -q
  data_of report.html
  python3 -c '
import json
(run,) = json.load(open("data.json"))
lines = [json.loads(line) for line in open("first.jsonl")]
passes = [line for line in lines if line["event"] == "pass"]
for key in ("pass", "seconds", "bytes_read", "primal", "dual", "gap", "test_accuracy", "solve_seconds", "wait_seconds", "read_seconds", "decode_seconds"):
    assert len(run["columns"][key]) == len(passes), key
    for shown, line in zip(run["columns"][key], passes):
        assert abs(shown - line[key]) <= 1e-5 * abs(line[key]), (key, shown, line[key])
assert run["begin"] == lines[0] and run["end"] == lines[-1]
assert run["begin"]["command"][1] == "train" and "--tolerance" in run["begin"]["command"], run["begin"]["command"]
assert run["memory"] and all(held > 0 for _, held in run["memory"])'
}

@test "several traces, also compressed, are laid over each other, and --json says what was made" {
  made
  trace first
  trace second --solver pegasos --max-passes 3
  gzip second.jsonl
  linblock report first.jsonl second.jsonl.gz -o report.html -q --json >out.json
  data_of report.html
  python3 -c '
import json, os
out, runs = json.load(open("out.json")), json.load(open("data.json"))
assert out["report"] == "report.html" and out["runs"] == 2 and out["bytes"] == os.path.getsize("report.html"), out
assert out["passes"] == out["shown_passes"] == sum(len(run["columns"]["pass"]) for run in runs), out
assert runs[1]["columns"]["gap"] == [None] * 3, runs[1]["columns"]["gap"]'
}

@test "a run that was resumed goes on in seconds and bytes, and one without an end is shown as it is" {
  made
  trace first --tolerance 0.001
  python3 -c '
import json
lines = [json.loads(line) for line in open("first.jsonl")]
passes = [line for line in lines if line["event"] == "pass"]
begin = lines[0]
with open("resumed.jsonl", "w") as out:
    for line in (begin, passes[0], dict(begin, event="resume"), passes[0]):
        print(json.dumps(line), file=out)'
  linblock report resumed.jsonl -o report.html -q
  data_of report.html
  python3 -c '
import json
(run,) = json.load(open("data.json"))
assert run["resumed"] == 1 and run["end"] is None, run
for key in ("seconds", "bytes_read"):
    first, second = run["columns"][key]
    assert abs(second - 2 * first) < 1e-5 * second, (key, first, second)'
}

@test "groups of classes are one run, whose passes, seconds and bytes go on from group to group" {
  linblock generate documents -o many.svm --rows 500 --classes 30 --features 200000 -q
  linblock train many.svm -o m --trace groups.jsonl --memory 16M --loss hinge --max-passes 2 -q
  [ "$(grep -c '"event":"begin"' groups.jsonl)" -eq 1 ]
  groups=$(($(grep -c '"event":"group"' groups.jsonl) + 1))
  [ "$groups" -gt 1 ]
  linblock report groups.jsonl -o report.html -q
  data_of report.html
  python3 -c '
import json, sys
(run,) = json.load(open("data.json"))
groups = int(sys.argv[1])
assert run["groups"] == groups and run["columns"]["pass"] == list(range(1, 2 * groups + 1)), run["columns"]["pass"]
assert run["end"]["passes"] == 2 * groups
assert run["columns"]["seconds"] == sorted(set(run["columns"]["seconds"])), run["columns"]["seconds"]
read = run["columns"]["bytes_read"]  # rows that stay in memory are read once
assert read == sorted(read) and read[0] > 0, read' "$groups"
}

@test "a trace of 300,000 blocks and 30,000 passes stays below 300 KB, first and last pass, sums and peaks kept" {
  made
  trace first
  python3 -c '
import json
lines = [json.loads(line) for line in open("first.jsonl")]
begin, end = lines[0], lines[-1]
block = next(line for line in lines if line["event"] == "block")
one = next(line for line in lines if line["event"] == "pass")
with open("long.jsonl", "w") as out:
    print(json.dumps(begin), file=out)
    for i in range(1, 30001):
        for b in range(10):
            print(json.dumps(dict(block, seconds=i - 1 + b / 10, resident_bytes=77777777 if (i, b) == (12345, 6) else 5000000 + b)), file=out)
        print(json.dumps(dict(one, **{"pass": i}, resident_bytes=5000000, seconds=i + 0.123456789, bytes_read=1234567 * i, gap=1.2345678 / i, primal=1000 + 1.2345678 / i,
                              solve_seconds=0.25, certified=i == 15001, certify_seconds=0.5 if i == 15001 else 0)), file=out)
    print(json.dumps(dict(end, passes=30000)), file=out)'
  linblock report long.jsonl first.jsonl -o report.html --json -q >out.json
  [ "$(stat -c %s report.html)" -lt 300000 ]
  data_of report.html
  python3 -c '
import json
run = json.load(open("data.json"))[0]
shown = run["columns"]
assert run["pass_lines"] == 30000 and 500 <= len(shown["pass"]) <= 2000, len(shown["pass"])
assert shown["pass"][0] == 1 and shown["pass"][-1] == 30000
steps = {b - a for a, b in zip(shown["pass"], shown["pass"][1:])}
assert max(steps) <= 3 * 30000 / len(shown["pass"]), steps
assert 15001 in shown["pass"], "the certificate"
assert sum(shown["passes"]) == 30000 and abs(sum(shown["solve_seconds"]) - 7500) < 0.1
assert max(held for _, held in run["memory"]) == 77777800 and len(run["memory"]) <= 400'
}

@test "names of files cannot become markup" {
  made
  mkdir '<'
  trace '</script><b>'
  linblock report '</script><b>.jsonl' -o report.html -q
  [ "$(grep -c '</script><b>' report.html)" -eq 0 ]
  data_of report.html
  python3 -c '
import json
assert json.load(open("data.json"))[0]["trace"] == "</script><b>.jsonl"'
}

@test "what is no trace is refused with its line and a remedy, exit code 3, and no page is written" {
  made
  trace first
  refused() {
    run linblock report "$1" -o report.html
    expect 3 "error: " "${@:2}"
    [ ! -e report.html ]
  }
  : >empty.jsonl
  refused empty.jsonl "'empty.jsonl' is empty" "linblock train --trace"
  printf '\n\n' >blank.jsonl
  refused blank.jsonl "only blank lines" "linblock train --trace"
  refused absent.jsonl "'absent.jsonl' does not exist"
  mkdir traces
  refused traces "'traces' is a folder"
  refused good.svm "good.svm:1: this is no line of a trace: the line is not JSON" "linblock train --trace"
  refused "$LINBLOCK" ":1: this is no line of a trace" "linblock train --trace"
  head -c 5000000 /dev/zero >zeros
  refused zeros "'zeros' has a line (1) that is no event of a trace" "linblock train --trace"
  head -c -20 first.jsonl >cut.jsonl
  refused cut.jsonl "cut.jsonl:$(wc -l <first.jsonl): the trace ends in the middle of this line" "wait for the end, or remove the line"
  sed '2s/.$//' first.jsonl >broken.jsonl
  refused broken.jsonl "broken.jsonl:2: this is no line of a trace: the line is not JSON"
  echo '[1, 2]' >list.json
  refused list.json "list.json:1: " "no object with an 'event'"
  echo '{"event": "click", "x": 3}' >foreign.json
  refused foreign.json "foreign.json:1: " "the first event is 'click'"
  echo '{"event": "begin", "loss": "hinge"}' >short.json
  refused short.json "short.json:1: " "'solver' is missing"
  sed '1d' first.jsonl >headless.jsonl
  refused headless.jsonl "headless.jsonl:1: " "should be 'begin' or 'resume'"
  { cat first.jsonl; echo '{"event": "party"}'; } >strange.jsonl
  refused strange.jsonl "no trace has an event 'party'"
  sed '1s/"inputs":\[[^]]*\]/"inputs":[7]/' first.jsonl >listed.jsonl
  refused listed.jsonl "listed.jsonl:1: " "'inputs' has something that is no text"
  sed 's/"bytes_read":[0-9]*/"bytes_read":"many"/' first.jsonl >wrong.jsonl
  refused wrong.jsonl "wrong.jsonl:" "'bytes_read' is not a number"
}

@test "-o must be a file that can be made, and no trace" {
  made
  trace first
  run linblock report first.jsonl -o first.jsonl
  expect 2 "is read by this command"
  run linblock report first.jsonl -o absent/report.html
  expect 5 "the directory 'absent' does not exist"
  run linblock report first.jsonl
  expect 2 "-o FILE (or --output) is required"
  run linblock report -o report.html
  expect 2 "TRACE is required"
  linblock report first.jsonl -o report.html -q
  linblock report first.jsonl -o report.html -q  # again: the page is replaced
}

@test "help shows how" {
  run linblock report --help
  expect 0 "linblock report run.jsonl -o report.html"
  run linblock --help
  expect 0 "report" "Show traces of training as one page of HTML"
}
