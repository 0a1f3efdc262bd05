// What `sluice report` makes of good and of bad files, without writing any.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cli/report_chart.h"
#include "cli/report_input.h"
#include "cli/report_page.h"

namespace sluice::cli {
namespace {

// What is wrong with the text; "" if nothing is.
std::string refused(const std::string& text) {
  std::string problem;
  const auto input = parse_report(text, &problem);
  EXPECT_EQ(input.has_value(), problem.empty());
  EXPECT_EQ(problem.find('\n'), std::string::npos);
  EXPECT_LT(problem.size(), 300U);
  return problem;
}

RunReport run_of(const std::string& text) {
  std::string problem;
  const auto input = parse_report(text, &problem);
  if (!input || !std::holds_alternative<RunReport>(*input)) {
    ADD_FAILURE() << text << ": " << problem;
    return {};
  }
  return std::get<RunReport>(*input);
}

std::string list(const char* name, const std::string& values) {
  return std::string("\"") + name + "\": [" + values + "]";
}

std::string with_history(const std::string& columns) {
  return "{\"precached_bytes\": 1, \"history\": {" + columns + "}}";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportInput, BadFilesAreNamedInOneLine) {
  EXPECT_TRUE(has(refused(""), "not JSON"));
  EXPECT_TRUE(has(refused("{\"precached_bytes\": 12"), "not JSON"));
  EXPECT_TRUE(has(refused("{\"precached_bytes\": 1e999}"), "not JSON"));
  EXPECT_TRUE(has(refused("{\"a\": {\"value\": 1}} x"), "not JSON"));
  EXPECT_TRUE(has(refused("{\"a\xff\": {\"value\": 1}}"), "not JSON"));
  EXPECT_EQ(refused("{\"a\xff\": 1}").find('\xff'), std::string::npos);
  EXPECT_TRUE(has(refused("{\"" + std::string(100000, 'a')), "not JSON"));
  EXPECT_TRUE(has(refused("{\"a\": 1" + std::string(100000, '0') + "}"), "not JSON"));
  const std::string accents = "{\"" + std::string(59, 'a') + "\u00e9\u00e9\": {}}";
  EXPECT_TRUE(has(refused(accents), std::string(59, 'a') + "... has no value"));
  for (const char* other :
       {"{}", "[]", "7", "null", "\"text\"", "{\"a\": 1}", "[{\"value\": 1}]"}) {
    EXPECT_TRUE(has(refused(other), "neither")) << other;
  }
  EXPECT_TRUE(has(refused(std::string(100000, '[')), "nested"));
  EXPECT_TRUE(has(refused("{\"precached_bytes\": \"many\"}"), "precached_bytes is not a number"));
  EXPECT_TRUE(has(refused("{\"precached_bytes\": -1}"), "less than 0"));
  EXPECT_TRUE(has(refused("{\"precached_bytes\": null}"), "not a number"));
}

TEST(ReportInput, TablesAreChecked) {
  EXPECT_TRUE(has(refused("{\"stall_ns\": 1, \"history\": []}"), "history is not an object"));
  EXPECT_TRUE(has(refused(with_history("\"time_ns\": 3")), "history.time_ns is not an array"));
  EXPECT_TRUE(has(refused(with_history(list("time_ns", "0, {}"))), "not a number"));
  EXPECT_TRUE(has(refused(with_history(list("time_ns", "0, -5"))), "less than 0"));
  EXPECT_TRUE(has(refused(with_history(list("time_ns", "0, 5, 3"))), "is not ascending"));
  EXPECT_TRUE(has(refused(with_history(list("time_ns", "0, 5") + "," + list("stall_ns", "1"))),
                  "has 1 values, others 2"));
  EXPECT_TRUE(has(refused("{\"stall_ns\": 1, \"epochs\": {\"seen\": true}}"), "seen"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += many.empty() ? "0" : ",0";
  EXPECT_TRUE(
      has(refused("{\"stall_ns\": 1, \"epochs\": {" + list("epoch", many) + "}}"), "too many"));
}

std::string with_substitutions(const std::string& members) {
  return R"({"stall_ns": 1, "substitutions": {"seen": 3, "parts": 2, )" + members + "}}";
}

TEST(ReportInput, SubstitutionsAreChecked) {
  EXPECT_TRUE(has(refused(R"({"stall_ns": 1, "substitutions": 3})"), "is not an object"));
  EXPECT_TRUE(has(refused(with_substitutions(list("counts", "1, 2"))), "for each two parts"));
  EXPECT_TRUE(has(refused(with_substitutions(list("counts", "1, 2, 0, -1"))), "less than 0"));
  const std::string counts = list("counts", "1, 2, 0, 0");
  EXPECT_TRUE(has(refused(with_substitutions(counts + "," + list("requested", "1"))), "length"));
  EXPECT_TRUE(
      has(refused(with_substitutions(counts + "," + list("trained", "1e30"))), "too large"));
  EXPECT_TRUE(has(refused(R"({"stall_ns": 1, "substitutions": {"parts": 1e9}})"), "too large"));
}

TEST(ReportPage, SubstitutionsAreATableAndAPicture) {
  EXPECT_FALSE(has(run_page(run_of(with_history(list("time_ns", "0"))), "x"), "in place of"));
  const RunReport run =
      run_of(with_substitutions(list("counts", "1, 2, 0, 0") + "," + list("requested", "7, 8") +
                                "," + list("trained", "90, 0")));
  const std::string page = run_page(run, "x");
  EXPECT_TRUE(has(page, "3 times a sample was trained in place of"));
  EXPECT_TRUE(has(page, "2 of them, drawn evenly"));
  EXPECT_TRUE(has(page, "66.7 %"));
  EXPECT_TRUE(has(page, "class=\"dots violet\" d=\"M70.0,30.0h.01M80.0,300.0h.01\""));
}

TEST(ReportInput, WhatIsMissingIsNothing) {
  const RunReport run = run_of(with_history(list("time_ns", "0, 9")));
  EXPECT_EQ(run.of(protocol::HistoryField::stall_ns), (std::vector<double>{0, 0}));
  EXPECT_EQ(run.figure("precached_bytes"), 1);
  EXPECT_EQ(run.figure("stall_ns"), 0);
  EXPECT_TRUE(has(run_page(run, "x"), "</html>"));
}

TEST(ReportInput, HugeHistoriesAreThinnedAndKeepTheirEnds) {
  std::string times;
  for (int i = 0; i < 200000; ++i) times += (i == 0 ? "" : ",") + std::to_string(i);
  const RunReport run = run_of(with_history(list("time_ns", times)));
  const auto& points = run.of(protocol::HistoryField::time_ns);
  EXPECT_LE(points.size(), 1025U);
  EXPECT_EQ(points.front(), 0);
  EXPECT_EQ(points.back(), 199999);
  EXPECT_LT(run_page(run, "x").size(), 1U << 20);
}

TEST(ReportInput, FiguresOfABench) {
  EXPECT_TRUE(has(refused("{\"a\": {\"goal\": 1}}"), "a has no value"));
  EXPECT_TRUE(has(refused("{\"a\": {\"value\": \"1\"}}"), "a.value is not a number"));
  EXPECT_TRUE(has(refused("{\"a\": {\"value\": 1, \"unit\": 2}}"), "a.unit is not text"));
  EXPECT_TRUE(has(refused("{\"a\": {\"value\": 1, \"goal\": []}}"), "a.goal is not a number"));
  std::string problem;
  const auto input = parse_report(
      R"({"x_share": {"value": 0.5, "goal": 0.9}, "cost": {"value": -3, "goal": 2, "unit": "us"},
          "reported": {"value": 4, "goal": null, "low": 3, "high": 5}})",
      &problem);
  ASSERT_TRUE(input) << problem;
  const BenchReport& bench = std::get<BenchReport>(*input);
  ASSERT_EQ(bench.size(), 3U);
  EXPECT_EQ(bench[0].met(), false);  // a share wants to be high
  EXPECT_EQ(bench[1].met(), true);
  EXPECT_EQ(bench[2].met(), std::nullopt);
  EXPECT_EQ(bench[2].high, 5);
  EXPECT_EQ(bench[1].low, -3);
  EXPECT_TRUE(has(bench_page(bench, "x"), "missed"));
}

TEST(ReportPage, TextOfFilesIsNoPartOfThePage) {
  EXPECT_EQ(escaped("<a href=\"x\">&'\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;?");
  BenchFigure figure;
  figure.name = "<script>alert(1)</script>";
  figure.unit = "\"><img src=x>";
  const std::string page = bench_page({figure}, "</title><b>");
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "</title><b>"));
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)"));
}

TEST(ReportPage, OddNumbersDrawNoOddShapes) {
  BenchReport bench;
  for (const double value : {0.0, -1.0, 1e300, 1e-300}) {
    for (const double goal : {0.0, -1.0, 1e300, 1e-300}) {
      bench.push_back({"n", "u", value, goal, false, value, value});
    }
  }
  const std::string benches = bench_page(bench, "x");
  const RunReport run = run_of(with_history(
      list("time_ns", "0, 0, 0") + "," + list("read_bytes", "1e300, 0, 3") + "," +
      list("budget_bytes", "0, 0, 0") + "," + list("stall_ns", "1e308, 1e308, 1e308")));
  const RunReport tiny = run_of(R"({"precached_bytes": 1e-320, "precached_unused_bytes": 5})");
  for (const std::string& page : {benches, run_page(run, "x"), run_page(tiny, "x")}) {
    EXPECT_FALSE(has(page, "nan"));
    EXPECT_FALSE(has(page, "inf\""));
    EXPECT_FALSE(has(page, "inf,"));
    EXPECT_FALSE(has(page, "inf %"));
  }
}

TEST(ReportPage, ValuesForPeople) {
  EXPECT_EQ(grouped(1234567, 0), "1,234,567");
  EXPECT_EQ(grouped(-0.5, 3), "-0.5");
  EXPECT_EQ(grouped(999, 2), "999");
  EXPECT_EQ(value_text(1536, Quantity::kBytes), "1.5 KiB");
  EXPECT_EQ(value_text(0, Quantity::kBytes), "0 B");
  EXPECT_EQ(value_text(0.25, Quantity::kSeconds), "250 ms");
  EXPECT_EQ(value_text(12.345, Quantity::kSeconds), "12.35 s");
  EXPECT_EQ(value_text(7200, Quantity::kSeconds), "120 min");
  EXPECT_EQ(value_text(17, Quantity::kCount), "17");
}

}  // namespace
}  // namespace sluice::cli
