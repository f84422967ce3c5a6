#include "cli/show/words.h"

#include <gtest/gtest.h>

namespace linblock::cli {
namespace {

std::string printed(const std::vector<Remedy>& remedies, const std::string& sentence = "it does not fit") {
  return message_of(Error(ErrorKind::memory, sentence, remedies));
}

TEST(Messages, SpellSettingsAsFlags) {
  EXPECT_EQ(as_flag("memory"), "--memory");
  EXPECT_EQ(as_flag("max_bad_rows"), "--max-bad-rows");
  EXPECT_EQ(printed({}, library_text("`cache_fraction` is {}, and `memory` {}", 2, "8 MB")),
            "--cache-fraction is 2, and --memory 8 MB");
}

TEST(Messages, WithoutRemediesAreTheSentenceAlone) { EXPECT_EQ(printed({}, "'a' is empty"), "'a' is empty"); }

TEST(Messages, EndWithTheRemediesAsAlternatives) {
  EXPECT_EQ(printed({give_at_least("memory", "40M")}), "it does not fit. Give --memory 40M or more.");
  EXPECT_EQ(printed({give_at_least("memory", "40M"), use("solver", "newton or dual"), leave_out("keep_state")}),
            "it does not fit. Give --memory 40M or more, or use --solver newton or dual, or leave out --keep-state.");
  EXPECT_EQ(printed({use("fresh")}), "it does not fit. Use --fresh.");
  EXPECT_EQ(printed({say("pack with smaller chunks (`chunk_bytes`)")}),
            "it does not fit. Pack with smaller chunks (--chunk-bytes).");
}

TEST(Messages, NameTheCommandThatMakesAPartOfAStore) {
  EXPECT_EQ(printed({rebuild("columns", "a.store")}),
            "it does not fit. Rebuild the columns with 'linblock transpose a.store --force'.");
  EXPECT_EQ(printed({rebuild("index", "a.store")}),
            "it does not fit. Rebuild the index with 'linblock index a.store --force'.");
  EXPECT_EQ(printed({rebuild("index", "a.store", library_text("`bias` {}", 0.5))}),
            "it does not fit. Rebuild the index with 'linblock index a.store --bias 0.5 --force'.");
}

TEST(Messages, GiveRemediesTheirOwnLineBelowSeveralLines) {
  EXPECT_EQ(printed({use("fresh")}, "another run:\n  cost: 1 then, 2 now"),
            "another run:\n  cost: 1 then, 2 now\nUse --fresh.");
}

TEST(Messages, PutNoSecondStopBehindASentence) {
  EXPECT_EQ(printed({use("loss", "hinge")}, "Is this right?"), "Is this right? Use --loss hinge.");
  EXPECT_EQ(printed({use("loss", "hinge")}, "It is not."), "It is not. Use --loss hinge.");
}

}  // namespace
}  // namespace linblock::cli
