"""Kills and errors at the N-th system call, by strace or, where that does not work, by the file hook."""
import collections
import os
import re
import signal

import harness
import jobs

# Those that the system may really refuse, and the errors that it gives.
ERRORS = {
    "openat": ["ENOSPC", "EIO", "EDQUOT", "EMFILE"],
    "read": ["EIO"],
    "pread64": ["EIO"],
    "write": ["ENOSPC", "EIO", "EDQUOT"],
    "pwrite64": ["ENOSPC", "EIO", "EDQUOT"],
    "fsync": ["ENOSPC", "EIO", "EDQUOT", "EINTR"],
    "rename": ["ENOSPC", "EIO", "EDQUOT"],
    "renameat2": ["ENOSPC", "EIO", "EDQUOT"],
    "link": ["ENOSPC", "EIO", "EDQUOT"],
    "unlink": ["EIO"],
    "rmdir": ["EIO"],
    "mkdir": ["ENOSPC", "EIO", "EDQUOT"],
    "ftruncate": ["EIO", "ENOSPC"],
    "close": ["EIO", "ENOSPC"],
    "flock": ["EIO"],
    "getdents64": ["EIO"],
}
HOOK_ERRORS = ["ENOSPC", "EIO", "EDQUOT"]


def trial(t):
    job = pick(t.random)
    want = jobs.reference(t.bench, job)
    jobs.prepare(t, job)
    killed, harmed = (by_strace if t.programs.strace else by_hook)(t, job)
    t.expect(not harmed.timed_out, f"{job.name}: a harmed run must end: {harmed.words()}")
    allowed = {0, harness.INTERRUPTED, *harness.REFUSALS} | ({-signal.SIGKILL} if killed else set())
    t.expect(harmed.code in allowed, f"{job.name}: {harmed.words()}")
    t.expect(harmed.code in (0, -signal.SIGKILL) or harmed.err or not killed, f"{job.name}: it failed and said nothing")
    jobs.old_or_new(t, job, want)
    if harmed.code == 0:
        check_success(t, job, want, harmed)
    jobs.finish(t, job, want)


def pick(random):
    """One trial in three is about several files that must change together."""
    if random.random() < 0.33:
        return random.choice([job for job in jobs.JOBS if job.delicate])
    return random.choice([job for job in jobs.JOBS if not job.slow] + jobs.WRITERS)


def place_among(random, count: int) -> int:
    """Which call: half of the time one of the last, where a command commits and cleans up."""
    return random.randint(1 if random.random() < 0.5 else max(1, count - 5), count)


def check_success(t, job, want, harmed):
    """Whoever says that all is well must have done the work. A file that could not be deleted may still be there."""
    missing = [name for name in want.files if not os.path.lexists(t.folder / name)]
    t.expect(job.after or not missing, f"{job.name}: exit code 0, but {missing[:3]} are missing")
    for name, answer in jobs.answers(t, job).items():
        t.expect(answer == want.after[name], f"{job.name}: exit code 0, but '{name}' is not the new one")
    if "--json" in job.words:
        t.expect(harmed.out, f"{job.name}: exit code 0 without the summary on stdout")


def by_strace(t, job):
    counts = t.bench.once("calls " + job.name, lambda: count_with_strace(t.bench, job))
    call = t.random.choice(sorted(counts))
    place = place_among(t.random, counts[call])
    killed = t.random.random() < 0.4
    if killed:
        harm = f"signal=KILL:when={place}"
    else:
        lasting = "+" if t.random.random() < 0.3 and call in ("write", "pwrite64", "mkdir", "rename") else ""
        harm = f"error={t.random.choice(ERRORS[call])}:when={place}{lasting}"
    wrapper = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{harm}"]
    return killed, t.run(*job.words, wrapper=wrapper, tested=True, timeout=60)


def count_with_strace(bench, job) -> dict:
    """How often each call is made by the thread that makes it most often: strace counts by thread."""
    trial = bench.trial("counting", 0)
    jobs.prepare(trial, job)
    log = trial.home / "calls"
    calls = ",".join("?" + call for call in ERRORS)
    trial.run(*job.words, wrapper=["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={calls}"], timeout=120)
    made = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text(errors="replace"), re.M))
    trial.forget()
    most = {}
    for (_, call), count in made.items():
        most[call] = max(most.get(call, 0), count)
    return most


def by_hook(t, job):
    t.expect(t.programs.hooked, "strace does not work here: give --hooked PROGRAM")
    counts = t.bench.once("hooks " + job.name, lambda: count_with_hook(t.bench, job))
    kind = t.random.choice(sorted(counts))
    place = place_among(t.random, counts[kind])
    killed = t.random.random() < 0.4
    action = "kill" if killed else t.random.choice(HOOK_ERRORS)
    return killed, t.run(*job.words, program=t.programs.hooked, env={"LINBLOCK_HOOK": f"{action}:{kind}:{place}"})


def count_with_hook(bench, job) -> dict:
    trial = bench.trial("counting", 0)
    jobs.prepare(trial, job)
    counts = trial.home / "counts"
    trial.must(*job.words, program=bench.programs.hooked, env={"LINBLOCK_HOOK_COUNT": str(counts)})
    found = {kind: int(count) for kind, count in (line.split() for line in counts.read_text().splitlines())}
    trial.forget()
    return {kind: count for kind, count in found.items() if count > 0}
