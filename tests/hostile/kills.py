"""Random SIGKILLs: the same command again must end with the same bytes."""
import signal

import jobs


def trial(t):
    job = pick(t.random)
    want = jobs.reference(t.bench, job)
    jobs.prepare(t, job)
    for _ in range(t.random.choice([1, 1, 1, 2, 4])):
        moment = moment_within(t.random, want.seconds)
        harmed = t.run(*job.words, tested=True, send=(moment, signal.SIGKILL), log="killed")
        t.expect(harmed.code in (0, -signal.SIGKILL), f"{job.name}: before it was killed: {harmed.words()}")
        jobs.old_or_new(t, job, want)
        if harmed.code == 0 or jobs.is_done(t, job):
            break
    jobs.finish(t, job, want)


def pick(random):
    """Slow jobs are streamed from disk; they are one trial in eight."""
    slow = random.random() < 0.125
    return random.choice([job for job in jobs.JOBS if job.slow == slow])


def moment_within(random, seconds: float) -> float:
    """Half of the time near the end, where a command commits and cleans up."""
    return seconds * (random.uniform(0, 1) if random.random() < 0.5 else random.uniform(0.75, 1.05))
