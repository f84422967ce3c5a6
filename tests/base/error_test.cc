#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/errors.h"

namespace linblock {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;

std::string in_brackets(std::string_view setting) { return "[" + std::string(setting) + "]"; }

TEST(Errors, HaveAKindASentenceAndRemedies) {
  const std::optional<Error> error = error_of([] {
    fail(ErrorKind::memory, {give_at_least("memory", "40M"), use("solver", "dual"), leave_out("truncate")},
         "{} weights need {}, and `memory` allows {}", 7, std::string("9 MB"), "8 MB");
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::memory);
  EXPECT_STREQ(error->what(), "7 weights need 9 MB, and memory allows 8 MB");
  EXPECT_THAT(error->remedies(), ElementsAre(Remedy{Remedy::Verb::give_at_least, "memory", "40M"},
                                             Remedy{Remedy::Verb::use, "solver", "dual"},
                                             Remedy{Remedy::Verb::leave_out, "truncate", ""}));
}

TEST(Errors, NeedNoRemedies) {
  const std::optional<Error> error = error_of([] { fail(ErrorKind::input, "'{}' is empty", "a.svm"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_STREQ(error->what(), "'a.svm' is empty");
  EXPECT_THAT(error->remedies(), IsEmpty());
}

TEST(Errors, KeepTheirSettingsWhenAnotherRepeatsThem) {
  const Error inner(ErrorKind::io, library_text("`store` is '{}'", "a"));
  const Error outer(inner.kind(), "not saved: " + inner.sentence());
  EXPECT_STREQ(outer.what(), "not saved: store is 'a'");
  EXPECT_EQ(spell_settings(outer.sentence(), in_brackets), "not saved: [store] is 'a'");
}

TEST(Remedies, OfPlainWordsMayNameSettings) {
  const Remedy remedy = say("use fewer `folds` than {}", 10);
  EXPECT_EQ(remedy.verb, Remedy::Verb::say);
  EXPECT_EQ(spell_settings(remedy.value, in_brackets), "use fewer [folds] than 10");
}

TEST(LibraryText, SpellsEachSettingAndNothingElse) {
  EXPECT_EQ(spell_settings("no settings", in_brackets), "no settings");
  EXPECT_EQ(spell_settings(library_text("`rows`"), in_brackets), "[rows]");
  EXPECT_EQ(spell_settings(library_text("`a` and `cache_fraction`: {:.1f}", 0.25), in_brackets),
            "[a] and [cache_fraction]: 0.2");
}

// Paths and rows may have any bytes, and are shown as they are.
TEST(LibraryText, TakesNoUsersDataForASetting) {
  EXPECT_EQ(spell_settings(library_text("'{}' is no `store`", "a `store` b"), in_brackets),
            "'a `store` b' is no [store]");
  for (const std::string path :
       {"\x01", "\x02", "a\x01", "\x01\x02", "\x01 memory\x02", "\x01memory", "\x02memory\x01"})
    EXPECT_EQ(spell_settings(library_text("'{}': `memory`", path), in_brackets), "'" + path + "': [memory]");
}

}  // namespace
}  // namespace linblock
