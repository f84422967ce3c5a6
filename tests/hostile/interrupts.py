"""SIGINT and SIGTERM at random times: the command ends soon, and can be taken up again."""
import signal

import harness
import jobs
import kills

SOON = 10
SOON_WITH_ASAN = 20


def trial(t):
    job = pick(t.random)
    want = jobs.reference(t.bench, job)
    jobs.prepare(t, job)
    asan = t.programs.asan if t.programs.asan and t.random.random() < 0.1 else None
    if "--memory" in job.words:
        asan = None  # it takes more memory for itself, and so packs and plans otherwise
    limit = SOON_WITH_ASAN if asan else SOON
    for _ in range(t.random.choice([1, 1, 2])):
        number = t.random.choice([signal.SIGINT, signal.SIGTERM])
        moment = kills.moment_within(t.random, want.seconds * (8 if asan else 1))
        harmed = t.run(*job.words, program=asan, tested=True, send=(moment, number), timeout=limit)
        t.expect(not harmed.timed_out, f"{job.name}: {number.name} must end it within {limit} seconds")
        # Before the handler is in place, and after main has ended, the signal itself ends the process.
        t.expect(harmed.code in (harness.DONE, harness.INTERRUPTED, -number),
                 f"{job.name}: after {number.name}: {harmed.words()}")
        jobs.old_or_new(t, job, want)
        if harmed.code == 0 or jobs.is_done(t, job):
            break
    jobs.finish(t, job, want)


def pick(random):
    """Threads that wait for one another are what an interrupt may leave waiting: index, two trials in five."""
    if random.random() < 0.4:
        return next(job for job in jobs.JOBS if job.name == "index many")
    return random.choice(jobs.WRITERS) if random.random() < 0.05 else kills.pick(random)
