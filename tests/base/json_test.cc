#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace linblock {
namespace {

TEST(Json, WritesEveryKindOfValueOnOneLine) {
  const Json json = {{"none", nullptr},
                     {"yes", true},
                     {"negative", -3},
                     {"large", UINT64_MAX},
                     {"share", 0.1},
                     {"text", "a\"b"},
                     {"list", {1, -1, 0.5}},
                     {"labels", std::vector<int32_t>{1, -1}},
                     {"words", std::vector<std::string>{"one", "two"}},
                     {"nested", {{"x", 1}}},
                     {"empty", Json::array()},
                     {"nothing", Json::object()}};
  EXPECT_EQ(json.dump(),
            R"({"none":null,"yes":true,"negative":-3,"large":18446744073709551615,"share":0.1,"text":"a\"b",)"
            R"("list":[1,-1,0.5],"labels":[1,-1],"words":["one","two"],"nested":{"x":1},"empty":[],"nothing":{}})");
}

TEST(Json, IndentsWhatPeopleRead) {
  const Json json = {{"rows", 60}, {"labels", {1, -1}}, {"empty", Json::array()}, {"plan", {{"inner", 2}}}};
  EXPECT_EQ(json.dump(1),
            "{\n \"rows\": 60,\n \"labels\": [\n  1,\n  -1\n ],\n \"empty\": [],\n \"plan\": {\n  \"inner\": 2\n }\n}");
}

TEST(Json, NumbersAreWrittenSoThatTheyAreReadAgain) {
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(-1.0).dump(), "-1.0");
  EXPECT_EQ(Json(1e-5).dump(), "1e-05");
  EXPECT_EQ(Json(1e15).dump(), "1e+15");
  EXPECT_EQ(Json(123456789.25).dump(), "123456789.25");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  for (const double number : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2.2250738585072014e-308})
    EXPECT_EQ(Json::parse(Json(number).dump()).number(), number);
}

TEST(Json, TextThatIsNoUtf8IsReplaced) {
  EXPECT_EQ(Json("caf\xe9").dump(), "\"caf\xef\xbf\xbd\"");
  EXPECT_EQ((Json{{"caf\xe9", 1}}.dump()), "{\"caf\xef\xbf\xbd\":1}");
  EXPECT_EQ(Json("caf\xc3\xa9\n\x01").dump(), "\"caf\xc3\xa9\\n\\u0001\"");
}

TEST(Json, ReadsBackWhatWasWritten) {
  const Json json = {{"a", {1, -2, 0.5, nullptr, false}}, {"b", {{"c", "d"}}}};
  EXPECT_EQ(Json::parse(json.dump()), json);
  EXPECT_EQ(Json::parse(json.dump(2)), json);
  EXPECT_EQ(Json::parse(json.dump()).dump(), json.dump());
}

TEST(Json, TellsKindsOfNumbersApart) {
  EXPECT_TRUE(Json::parse("5").is_unsigned());
  EXPECT_FALSE(Json::parse("-5").is_unsigned());
  EXPECT_FALSE(Json::parse("5.0").is_unsigned());
  EXPECT_FALSE(Json::parse("18446744073709551616").is_unsigned());
  EXPECT_EQ(Json::parse("18446744073709551615").whole(), UINT64_MAX);
  EXPECT_EQ(Json(5), Json::parse("5"));
  EXPECT_EQ(Json(5), Json(5.0));
  EXPECT_NE(Json(-1), Json(UINT64_MAX));
  EXPECT_NE(Json(1), Json(true));
}

TEST(Json, MembersKeepTheirOrderAndTheirPlace) {
  Json json;
  json["b"] = 1;
  json["a"] = 2;
  json.update({{"c", 3}, {"b", 4}});
  EXPECT_EQ(json.dump(), R"({"b":4,"a":2,"c":3})");
  EXPECT_EQ(Json::parse(R"({"x":1,"y":2,"x":3})").dump(), R"({"x":3,"y":2})");
}

TEST(Json, ListsGrow) {
  Json json;
  json["tasks"].push_back({{"label", 1}});
  json["tasks"].back()["gap"] = 0.5;
  json["tasks"].push_back({1, 2});
  EXPECT_EQ(json.dump(), R"({"tasks":[{"label":1,"gap":0.5},[1,2]]})");
  EXPECT_EQ(json.at("tasks").size(), 2U);
}

// What the sentence of the error is, or "" where there was none.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

TEST(Json, SaysWhatIsMissingOrOfAnotherKind) {
  const Json json = Json::parse(R"({"rows":-1,"codec":7,"list":[1]})");
  EXPECT_EQ(error_of([&] { json.at("labels"); }), "'labels' is missing");
  EXPECT_EQ(error_of([&] { json.at("rows").whole(); }), "'-1' is no whole number");
  EXPECT_EQ(error_of([&] { json.at("codec").text(); }), "'7' is no text");
  EXPECT_EQ(error_of([&] { json.at("rows").flag(); }), "'-1' is no truth value");
  EXPECT_EQ(error_of([&] { json.at("list").number(); }), "'[1]' is no number");
  EXPECT_EQ(error_of([&] { json.at("rows").items(); }), "'-1' is no list");
  EXPECT_EQ(error_of([&] { json.at("rows").at("x"); }), "'-1' is no object");
  EXPECT_EQ(json.at("rows").find("x"), nullptr);
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1", "nul", "1 2", "{\"a\"}", "\"\xff\"", "1e999"}) {
    EXPECT_NE(error_of([&] { Json::parse(text); }), "") << text;
    EXPECT_FALSE(Json::try_parse(text)) << text;
  }
  EXPECT_TRUE(Json::try_parse("null")->is_null());
}

TEST(Json, RefusesListsThatAreNestedTooDeeply) {
  EXPECT_TRUE(Json::try_parse(std::string(60, '[') + std::string(60, ']')));
  EXPECT_EQ(error_of([&] { Json::parse(std::string(1'000'000, '[')); }), "lists are nested too deeply");
}

}  // namespace
}  // namespace linblock
