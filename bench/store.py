"""The store: text to chunks against LIBLINEAR's reading of the same text, and how fast chunks come back."""
from statistics import median

from experiments import Bound, Experiment, Measure, Program, Suite, median_wall, summaries
from measures import MEBIBYTE, walls, walls_ratio

DATA_SETS = ("documents", "dense", "imdb", "splice")

# So loose a tolerance that it stops after one iteration: little more than reading the text and writing the model.
LIBLINEAR_LOAD = Program("LIBLINEAR load", "liblinear-train", "-s 3 -e 1e6 {text} {model}", makes="{model}", says="#iter = 1\n")
PACK = Program("pack", "linblock", "pack {text} -o {store} --memory 64M --codec none --threads 2 -q --json", makes="{store}")
RATES = Program("rates", "store_rates", "{text} {store}", after=PACK.name)
GENERATE = Program("generate", "linblock", "generate documents -o {generated} --rows {rows} --features 1000000 --nonzeros 110 -q",
                   makes="{generated}")
ONE_THREAD, TWO_THREADS = "parse_gb_per_second_1_thread", "parse_gb_per_second_2_threads"


def load_before_model_over_pack(load, pack):
    # LIBLINEAR says that it is done before it writes the model, which for many features takes long.
    return [median(run.first_output_seconds for run in load) / median_wall(pack)]


def largest_peak(runs):
    return [max(run.peak_memory_bytes for run in runs) / MEBIBYTE]


def two_threads_over_one(runs):
    return [median(summaries(TWO_THREADS)(runs)) / median(summaries(ONE_THREAD)(runs))]


SUITE = Suite((
    Experiment("pack", (LIBLINEAR_LOAD, PACK), data_sets=DATA_SETS, measures=(
        Measure("LIBLINEAR load / pack", "times", (LIBLINEAR_LOAD, PACK), walls_ratio, Bound(least=10)),
        Measure("the same, its model not written", "times", (LIBLINEAR_LOAD, PACK), load_before_model_over_pack),
        Measure("largest peak memory of pack", "MiB", (PACK,), largest_peak, Bound(most=64)),
        Measure("bytes a nonzero", "bytes", (PACK,), summaries("bytes_per_nonzero"),
                {"documents": Bound(most=5.9), "imdb": Bound(most=5.9), "splice": Bound(most=2.2)}),
    )),
    Experiment("rates", (RATES,), data_sets=DATA_SETS, before=(PACK,), measures=(
        Measure("parse, 1 thread", "GB/s", (RATES,), summaries(ONE_THREAD), Bound(least=0.6)),
        Measure("parse, 2 threads / 1 thread", "times", (RATES,), two_threads_over_one, Bound(least=1.8)),  # about 2
        Measure("read, check, decode", "M nonzeros/s", (RATES,),
                summaries("read_check_decode_million_nonzeros_per_second"), Bound(least=700)),
        Measure("the same with a dot product", "M nonzeros/s", (RATES,),
                summaries("with_dot_million_nonzeros_per_second"), Bound(least=300)),
    )),
    # 565,000 rows are 1.0 GB of text.
    Experiment("generate", (GENERATE,), rows=(565_000, 2_000), measures=(
        Measure("generate 1 GB of documents", "s", (GENERATE,), walls, Bound(most=10)),
    )),
))
