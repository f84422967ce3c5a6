"""The store: text to chunks against LIBLINEAR's reading of the same text, and how fast chunks come back."""
from anchors import LOAD
from commands import MEBIBYTE, PACK, generate
from dataclasses import replace
from program import Bound, Experiment, Measure, Program
from values import of, wall

SETS = ("documents", "dense", "imdb", "splice")
PACK_SMALL = replace(PACK, arguments=PACK.arguments.replace("256M", "64M"))
VERIFY = Program("verify", "linblock", "verify {store} --threads 1 -q")
GENERATE = generate("--rows {rows_1} --features 1000000 --nonzeros 110")

EXPERIMENTS = (
    Experiment("store", "pack", "Text into chunks of 64 MB of memory, against LIBLINEAR's loading; then every chunk read, checked and decoded by one thread.",
               (LOAD, PACK_SMALL, VERIFY), (
                   Measure("LIBLINEAR load / pack", "times", wall(LOAD) / wall(PACK_SMALL), Bound(least=10)),
                   Measure("peak memory of pack", "MiB", of(PACK_SMALL, lambda run: run.peak_memory_bytes / MEBIBYTE), Bound(most=64)),
                   Measure("bytes a nonzero", "", of(PACK_SMALL, "bytes_per_nonzero"), Bound(most=5.9), ("documents", "imdb", "splice")),
                   Measure("packed and synced", "M nonzeros/s", of(PACK_SMALL, "nonzeros") / wall(PACK_SMALL) / 1e6),
                   Measure("verified", "M nonzeros/s", of(PACK_SMALL, "nonzeros") / wall(VERIFY) / 1e6)), SETS),
    Experiment("store", "generate", "1 GB of documents, 565,000 rows.", (GENERATE,), (Measure("time", "s", wall(GENERATE), Bound(most=10)),),
               rows=(565_000, 2_000)),
)
