// The value of SLUICE_IMPORTANCE, and words that are nearly others.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "protocol/importance.h"
#include "protocol/options.h"
#include "protocol/words.h"

namespace sluice::protocol {
namespace {

using Key = ImportanceKey;

std::string problem_of(const char* text) {
  Importance parsed;
  parsed.mode = ImportanceMode::kLoss;
  const char* problem = parse_importance(text, &parsed);
  if (problem == nullptr) return "";
  EXPECT_EQ(parsed.mode, ImportanceMode::kOff) << text;
  return problem;
}

TEST(Importance, ModesAndKeys) {
  Importance parsed;
  EXPECT_EQ(parse_importance("loss", &parsed), nullptr);
  EXPECT_EQ(parsed.mode, ImportanceMode::kLoss);
  EXPECT_EQ(parse_importance("iis", &parsed), nullptr);
  EXPECT_EQ(parsed.value(Key::kWarmUp), 5U);
  EXPECT_FALSE(parsed.has(Key::kWarmUp));
  EXPECT_EQ(parse_importance("iis:share=50,warmup=7,substitute=any", &parsed), nullptr);
  EXPECT_EQ(parsed.mode, ImportanceMode::kIis);
  EXPECT_EQ(parsed.value(Key::kShare), 50U);
  EXPECT_EQ(parsed.value(Key::kWarmUp), 7U);
  EXPECT_EQ(parsed.value(Key::kSubstitute), 2U);
  EXPECT_TRUE(parsed.has(Key::kShare));
  EXPECT_FALSE(parsed.has(Key::kSeed));
  EXPECT_EQ(parse_importance("iis:seed=18446744073709551615", &parsed), nullptr);
  EXPECT_EQ(parsed.value(Key::kSeed), UINT64_MAX);
}

TEST(Importance, WhatMakesNoSenseIsRefusedWithAReason) {
  for (const char* text : {"",
                           "yes",
                           "off:share=5",
                           "loss:seed=1",
                           "iis:",
                           "iis:share",
                           "iis:share=",
                           "iis:share=0",
                           "iis:share=101",
                           "iis:share=5,",
                           "iis:share=5,share=5",
                           "iis:seed=18446744073709551616",
                           "iis:seed=-1",
                           "iis:shares=5",
                           "iis:substitute=all",
                           "iis:substitute=",
                           "iis,share=5",
                           "IIS",
                           "iis:warmup=1.5",
                           "iis:=5",
                           "iis:share=5:warmup=1"}) {
    EXPECT_NE(problem_of(text), "") << text;
  }
  EXPECT_EQ(problem_of("off"), "");
}

TEST(Importance, AnUnknownKeyIsAnsweredByAllThatThereAre) {
  const std::string problem = problem_of("iis:speed=1");
  for (const ImportanceKeyInfo& info : kImportanceKeys) {
    EXPECT_NE(problem.find(info.name), std::string::npos) << info.name;
  }
}

unsigned distance(const char* a, const char* b) {
  return edit_distance(a, strlen(a), b, strlen(b));
}

TEST(Words, DistanceIsTheLeastNumberOfSlips) {
  EXPECT_EQ(distance("", ""), 0U);
  EXPECT_EQ(distance("", "abc"), 3U);
  EXPECT_EQ(distance("abc", ""), 3U);
  EXPECT_EQ(distance("status", "status"), 0U);
  EXPECT_EQ(distance("statsu", "status"), 1U);
  EXPECT_EQ(distance("tatus", "status"), 1U);
  EXPECT_EQ(distance("statuss", "status"), 1U);
  EXPECT_EQ(distance("ststus", "status"), 1U);
  EXPECT_EQ(distance("kitten", "sitting"), 3U);
  const std::string longest(47, 'x'), longer(48, 'x');
  EXPECT_EQ(distance(longest.c_str(), "x"), 46U);
  EXPECT_GT(distance(longer.c_str(), longer.c_str()), 48U);
}

TEST(Words, AVariableThatIsNearlyOneOfOurs) {
  const auto meant = [](const char* name) -> std::string {
    const OptionInfo* info = misspelled_variable(name, strlen(name));
    return info != nullptr ? info->variable : "";
  };
  EXPECT_EQ(meant("SLUICE_SZIE"), "SLUICE_SIZE");
  EXPECT_EQ(meant("SLUICE_DATASETS"), "SLUICE_DATASET");
  EXPECT_EQ(meant("SLUICE_IMPORTANSE"), "SLUICE_IMPORTANCE");
  for (const char* name : {"SLUICE_SIZE", "SLUICE_JOB", "SLUICE_PYTHONPATH_WAS", "SLUICE_HOME",
                           "SLUICE_", "SLUICE", "PATH", "", "LUICE_SIZE", "SLUICE_WHAT_IS_THIS"}) {
    EXPECT_EQ(meant(name), "") << name;
  }
}

}  // namespace
}  // namespace sluice::protocol
