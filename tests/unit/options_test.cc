// The table of options and the parsers of its values.
#include "protocol/options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sluice::protocol {
namespace {

uint64_t bytes(const char* text) {
  uint64_t value = 0;
  EXPECT_TRUE(parse_bytes(text, &value)) << text;
  return value;
}

bool refused(const char* text) {
  constexpr uint64_t kUntouched = 0x5eed;
  uint64_t value = kUntouched;
  const bool good = parse_bytes(text, &value);
  EXPECT_TRUE(good || value == kUntouched) << text;
  return !good;
}

TEST(ParseBytes, SuffixesArePowersOf1024) {
  EXPECT_EQ(bytes("0"), 0U);
  EXPECT_EQ(bytes("4096"), 4096U);
  EXPECT_EQ(bytes("4096b"), 4096U);
  EXPECT_EQ(bytes("3K"), 3ULL << 10);
  EXPECT_EQ(bytes("3k"), 3ULL << 10);
  EXPECT_EQ(bytes("50M"), 50ULL << 20);
  EXPECT_EQ(bytes("50MB"), 50ULL << 20);
  EXPECT_EQ(bytes("50MiB"), 50ULL << 20);
  EXPECT_EQ(bytes("50mib"), 50ULL << 20);
  EXPECT_EQ(bytes("2G"), 2ULL << 30);
  EXPECT_EQ(bytes("1T"), 1ULL << 40);
  EXPECT_EQ(bytes("007M"), 7ULL << 20);
}

TEST(ParseBytes, Fractions) {
  EXPECT_EQ(bytes("1.5G"), 3ULL << 29);
  EXPECT_EQ(bytes("0.25K"), 256U);
  EXPECT_EQ(bytes("1.0"), 1U);
  EXPECT_EQ(bytes("0.001K"), 1U);
  EXPECT_EQ(bytes("1.0005M"), (1ULL << 20) + 524);
  EXPECT_EQ(bytes("0.1G"), 107374182U);
  EXPECT_TRUE(refused("1.5"));
  EXPECT_TRUE(refused("1.5b"));
  // A fraction of a byte is refused however far behind the point it stands.
  EXPECT_TRUE(refused("1.0001"));
  EXPECT_TRUE(refused("1.00000000000001"));
  EXPECT_TRUE(refused("1.M"));
  EXPECT_TRUE(refused(".5M"));
  EXPECT_TRUE(refused("1.5.5M"));
}

TEST(ParseBytes, TheLargestValuesFitAndTheNextOverflow) {
  EXPECT_EQ(bytes("18446744073709551615"), UINT64_MAX);
  EXPECT_TRUE(refused("18446744073709551616"));
  EXPECT_TRUE(refused("99999999999999999999999999"));
  EXPECT_EQ(bytes("18014398509481983K"), UINT64_MAX - 1023);
  EXPECT_TRUE(refused("18014398509481984K"));
  EXPECT_EQ(bytes("16777215T"), 16777215ULL << 40);
  EXPECT_EQ(bytes("16777215.999999T"), (16777215ULL << 40) + ((999999ULL << 40) / 1000000));
  EXPECT_TRUE(refused("16777216T"));
}

TEST(ParseBytes, AnythingElseIsRefused) {
  for (const char* text : {"", " ", "fifty", "-1", "+1", " 50M", "50M ", "50 M", "50X", "50MM",
                           "50Mi b", "50iB", "0x10", "1e6", "K", "auto", "50M\n", "1,5G"}) {
    EXPECT_TRUE(refused(text)) << "'" << text << "'";
  }
}

TEST(ParseSwitch, WordsAndNothingElse) {
  for (const char* text : {"on", "1", "yes", "true"}) {
    bool on = false;
    EXPECT_TRUE(parse_switch(text, &on)) << text;
    EXPECT_TRUE(on) << text;
  }
  for (const char* text : {"off", "0", "no", "false"}) {
    bool on = true;
    EXPECT_TRUE(parse_switch(text, &on)) << text;
    EXPECT_FALSE(on) << text;
  }
  for (const char* text : {"", "2", "ON", "of", "onn", "y", "enabled"}) {
    bool on = true;
    EXPECT_FALSE(parse_switch(text, &on)) << text;
    EXPECT_TRUE(on) << "a refused word changes nothing";
  }
}

TEST(OptionsTable, OrderIsTheEnums) {
  for (uint32_t at = 0; at < kOptionCount; ++at) {
    EXPECT_EQ(static_cast<uint32_t>(kOptions[at].option), at) << kOptions[at].flag;
    EXPECT_EQ(&option_info(kOptions[at].option), &kOptions[at]);
  }
}

TEST(OptionsTable, NamesAreUniqueAndSpellTheSame) {
  std::set<std::string> flags;
  for (const OptionInfo& info : kOptions) {
    EXPECT_TRUE(flags.insert(info.flag).second) << info.flag;
    std::string variable = "SLUICE_";
    for (const char* at = info.flag; *at != '\0'; ++at) {
      EXPECT_TRUE((*at >= 'a' && *at <= 'z') || *at == '-') << info.flag;
      variable += *at == '-' ? '_' : static_cast<char>(*at - 'a' + 'A');
    }
    EXPECT_EQ(variable, info.variable);
    EXPECT_STRNE(info.flag, "help");
  }
}

TEST(OptionsTable, DefaultsAreGoodOrUnset) {
  for (const OptionInfo& info : kOptions) {
    if (*info.default_text == '\0') {
      EXPECT_TRUE(info.kind == OptionKind::kText || info.kind == OptionKind::kPaths) << info.flag;
    }
    EXPECT_EQ(option_problem(info, info.default_text), nullptr) << info.flag;
  }
}

TEST(OptionsTable, HelpIsOneLineWithoutFullStop) {
  for (const OptionInfo& info : kOptions) {
    const std::string help = info.help;
    ASSERT_FALSE(help.empty()) << info.flag;
    EXPECT_EQ(help.find('\n'), std::string::npos) << info.flag;
    EXPECT_NE(help.back(), '.') << info.flag;
    EXPECT_LE(info.low, info.high) << info.flag;
  }
}

TEST(OptionProblem, BoundsAreInclusive) {
  const OptionInfo& threshold = option_info(Option::kThreshold);
  EXPECT_EQ(option_problem(threshold, "1"), nullptr);
  EXPECT_EQ(option_problem(threshold, "100"), nullptr);
  EXPECT_NE(option_problem(threshold, "0"), nullptr);
  EXPECT_NE(option_problem(threshold, "101"), nullptr);
  EXPECT_NE(option_problem(threshold, "18446744073709551691"), nullptr);  // 75 after a wrap
  EXPECT_NE(option_problem(threshold, "75%"), nullptr);
  EXPECT_NE(option_problem(threshold, "auto"), nullptr);
  const OptionInfo& size = option_info(Option::kSize);
  EXPECT_EQ(option_problem(size, "64K"), nullptr);
  EXPECT_EQ(option_problem(size, "1T"), nullptr);
  EXPECT_EQ(option_problem(size, "auto"), nullptr);
  EXPECT_NE(option_problem(size, "65535"), nullptr);
  EXPECT_NE(option_problem(size, "1.1T"), nullptr);
  EXPECT_STREQ(option_problem(size, "fifty"), "is not a size such as 50M");
}

TEST(OptionProblem, ChoicesAreWholeWords) {
  const OptionInfo& checkpoint = option_info(Option::kCheckpoint);
  for (const char* good : {"auto", "cell", "page", "observe", "off"}) {
    EXPECT_EQ(option_problem(checkpoint, good), nullptr) << good;
  }
  for (const char* bad : {"", "cel", "cells", "auto|cell", "|", "off|", "Cell"}) {
    EXPECT_NE(option_problem(checkpoint, bad), nullptr) << bad;
  }
}

// The handshake sends options as lines: a value with a line break would be two of them.
TEST(OptionProblem, TextThatBreaksALineIsRefused) {
  EXPECT_NE(option_problem(option_info(Option::kReport), "a\nmemory=1G"), nullptr);
  EXPECT_NE(option_problem(option_info(Option::kDataset), "/data\n"), nullptr);
  EXPECT_EQ(option_problem(option_info(Option::kDataset), "/data:/more data"), nullptr);
  EXPECT_EQ(option_problem(option_info(Option::kReport), ""), nullptr);
}

// An empty switch used to pass, and to turn off what is on by default.
TEST(OptionProblem, EmptyIsNoSwitchSizeNumberOrChoice) {
  for (const OptionInfo& info : kOptions) {
    const bool text = info.kind == OptionKind::kText || info.kind == OptionKind::kPaths;
    EXPECT_EQ(option_problem(info, "") == nullptr, text) << info.flag;
  }
}

}  // namespace
}  // namespace sluice::protocol
