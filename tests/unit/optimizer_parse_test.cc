// What clients send, right and wrong.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "optimizer/control/parse.h"

namespace sluice::optimizer {

using policy::ImportanceOptions;
namespace {

using protocol::EventData;
using protocol::EventKind;
using protocol::MessageHeader;
using protocol::MessageKind;

template <typename Body>
std::string bytes_of(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof body};
}

std::string packet(MessageKind kind, const std::string& body,
                   uint32_t version = protocol::kVersion) {
  MessageHeader header;
  header.kind = kind;
  header.version = version;
  return bytes_of(header) + body;
}

Message parse(const std::string& bytes) { return parse_packet(std::as_bytes(std::span(bytes))); }

std::string refusal(const std::string& bytes) {
  const Message message = parse(bytes);
  const auto* bad = std::get_if<BadMessage>(&message);
  return bad == nullptr ? "" : bad->reason;
}

TEST(Parse, AHelloBringsItsOptions) {
  const Message message =
      parse(packet(MessageKind::kHello, bytes_of(protocol::Hello{42, 0}) +
                                            "size=50M\ndistance=auto\n"
                                            "threshold=60\nprefetch=off\n"
                                            "memory=1G\nlinger=5\nlog=debug\n"
                                            "force-fallback=nouring,nocachestat\n"));
  const auto* hello = std::get_if<HelloMessage>(&message);
  ASSERT_NE(hello, nullptr);
  EXPECT_EQ(hello->pid, 42u);
  EXPECT_EQ(hello->options.size, 50u << 20);
  EXPECT_EQ(hello->options.distance, 0u);
  EXPECT_EQ(hello->options.threshold, 60u);
  EXPECT_FALSE(hello->options.prefetch);
  EXPECT_EQ(hello->options.memory, 1u << 30);
  EXPECT_EQ(hello->options.linger, 5u);
  EXPECT_EQ(hello->options.log, "debug");
  EXPECT_TRUE(hello->options.no_uring);
  EXPECT_TRUE(hello->options.no_cachestat);
  EXPECT_FALSE(hello->options.no_pagemap_scan);
  EXPECT_TRUE(hello->problems.empty());
}

TEST(Parse, BadOptionsAreNamedAndTheRestStands) {
  std::vector<std::string> problems;
  const SessionOptions options = parse_options(
      "size=fifty\nnonsense\nunheard=1\nthreshold=101\nmemory=2G\n\nlog=loud", &problems);
  EXPECT_EQ(options.size, 0u);
  EXPECT_EQ(options.threshold, 75u);
  EXPECT_EQ(options.packs, 16ULL << 30) << "as protocol/options.h has it";
  EXPECT_EQ(options.memory, 2u << 30);
  EXPECT_EQ(options.log, "");
  ASSERT_EQ(problems.size(), 5u);
  EXPECT_NE(problems[0].find("fifty"), std::string::npos);
  EXPECT_NE(problems[1].find("nonsense"), std::string::npos);
}

TEST(Parse, ProblemsAreOneLineEachAndBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "bad\x01\x02\x1b[2J=1\n";
  std::vector<std::string> problems;
  parse_options(text, &problems);
  EXPECT_LE(problems.size(), 16u);
  for (const std::string& problem : problems) {
    for (const char c : problem) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST(Parse, AFileBringsItsPathMadePrintable) {
  protocol::File file{};
  file.inode = 7;
  file.size = 1 << 20;
  const Message message =
      parse(packet(MessageKind::kFile, bytes_of(file) + "/data/a\nb" + std::string(5000, 'x')));
  const auto* parsed = std::get_if<FileMessage>(&message);
  ASSERT_NE(parsed, nullptr);
  EXPECT_EQ(parsed->file.inode, 7u);
  EXPECT_EQ(parsed->path.substr(0, 9), "/data/a?b");
  EXPECT_EQ(parsed->path.size(), protocol::kMaxPath);
}

TEST(Parse, WrongPacketsAreRefusedInOneLine) {
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("short"), "");
  EXPECT_NE(refusal(std::string(16, '\0')), "");
  EXPECT_NE(refusal(packet(MessageKind::kHello, "")), "");
  EXPECT_NE(refusal(packet(MessageKind::kFile, std::string(47, 'x'))), "");
  EXPECT_NE(refusal(packet(MessageKind::kBye, "")), "");
  EXPECT_NE(refusal(packet(static_cast<MessageKind>(99), "")), "");
  EXPECT_NE(refusal(packet(MessageKind::kWelcome, std::string(24, 'x'))), "");
  EXPECT_NE(refusal(std::string(protocol::kMaxPacket + 1, 'x')), "");
  const std::string version = refusal(packet(MessageKind::kStatus, "", protocol::kVersion + 1));
  EXPECT_NE(version.find(std::to_string(protocol::kVersion + 1)), std::string::npos);
  EXPECT_EQ(version.find('\n'), std::string::npos);
  EXPECT_TRUE(std::holds_alternative<StatusMessage>(parse(packet(MessageKind::kStatus, ""))));
  EXPECT_TRUE(std::holds_alternative<StopMessage>(parse(packet(MessageKind::kStop, "more"))));
}

TEST(Parse, AFileSizeBeyondAllFilesIsRefused) {
  protocol::File file{};
  file.size = UINT64_MAX;
  EXPECT_NE(refusal(packet(MessageKind::kFile, bytes_of(file))), "");
}

TEST(Parse, EventsThatCannotBeAreRefused) {
  constexpr uint64_t kSize = 1 << 30;
  EventData event;
  event.kind = EventKind::kTrip;
  event.length = 4096;
  EXPECT_TRUE(event_is_sane(event, kSize));
  event.length = 0;
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.length = UINT64_MAX;
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.length = 4096;
  event.offset = 3 * kSize;
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.offset = 0;
  event.kind = EventKind::kNone;
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.kind = static_cast<EventKind>(999);
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.kind = EventKind::kMapped;
  event.address = 0x7f0000000000;
  EXPECT_TRUE(event_is_sane(event, kSize));
  event.address += 1;
  EXPECT_FALSE(event_is_sane(event, kSize));
  event.address = UINT64_MAX & ~4095ULL;
  EXPECT_FALSE(event_is_sane(event, kSize));
}

TEST(Parse, ImportanceMustBeAsLongAsItSays) {
  protocol::Samples message{};
  message.count = 3;
  for (const auto& [kind, each] :
       {std::pair{MessageKind::kImportance, 16U}, std::pair{MessageKind::kSelect, 1U},
        std::pair{MessageKind::kDeliver, 4U}}) {
    message.bytes = 3 * each;
    const Message good = parse(packet(kind, bytes_of(message)));
    ASSERT_NE(std::get_if<ImportanceMessage>(&good), nullptr);
    EXPECT_EQ(std::get_if<ImportanceMessage>(&good)->kind, kind);
    ++message.bytes;
    EXPECT_EQ(refusal(packet(kind, bytes_of(message))), "invalid importance");
    EXPECT_EQ(refusal(packet(kind, "short")), "importance too short");
  }
  message.count = UINT64_MAX / 4 + 1;  // whose bytes would be none
  message.bytes = 0;
  EXPECT_NE(refusal(packet(MessageKind::kDeliver, bytes_of(message))), "");
  message.count = protocol::kMostDelivered + 1;  // others would wait for so many
  message.bytes = message.count * 4;
  EXPECT_NE(refusal(packet(MessageKind::kDeliver, bytes_of(message))), "");
}

TEST(Parse, ARankIsBelowTheNumberOfRanks) {
  protocol::Samples message{};
  const auto is_good = [&](uint32_t rank, uint16_t all, uint16_t on_host) {
    message.rank = rank;
    message.ranks = {all, on_host};
    return refusal(packet(MessageKind::kSelect, bytes_of(message))).empty();
  };
  EXPECT_TRUE(is_good(0, 0, 0)) << "it is no rank";
  EXPECT_TRUE(is_good(0, 1, 1));
  EXPECT_TRUE(is_good(7, 8, 4));
  EXPECT_FALSE(is_good(1, 0, 0));
  EXPECT_FALSE(is_good(8, 8, 4));
  EXPECT_FALSE(is_good(0, 8, 0));
  EXPECT_FALSE(is_good(0, 8, 9));
  EXPECT_FALSE(is_good(UINT32_MAX, UINT16_MAX, 1));
}

TEST(Parse, WhatImportanceAsksFor) {
  std::vector<std::string> problems;
  const SessionOptions options = parse_options(
      "importance=iis:substitute=class,share=40,warmup=2,full-every=0,beta=150,history=7,"
      "h-share=60,most-substituted=5,seed=9\n",
      &problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_TRUE(options.selects);
  EXPECT_EQ(options.importance.substitution, ImportanceOptions::Substitution::kSameLabel);
  EXPECT_EQ(options.importance.selector, "share");
  EXPECT_EQ(options.importance.selection.warm_up, 2U);
  EXPECT_EQ(options.importance.selection.full_every, 0U);
  EXPECT_DOUBLE_EQ(options.importance.selection.beta, 1.5);
  EXPECT_EQ(options.importance.selection.history, 7U);
  EXPECT_DOUBLE_EQ(options.importance.selection.share, 0.4);
  EXPECT_DOUBLE_EQ(options.importance.h_share, 0.6);
  EXPECT_DOUBLE_EQ(options.importance.most_substituted, 0.05);
  EXPECT_EQ(options.importance.selection.seed, 9U);
  EXPECT_TRUE(options.importance.seed_given);
}

TEST(Parse, ImportanceIsAsItIsWhereNothingIsSaidOfIt) {
  std::vector<std::string> problems;
  const ImportanceOptions said = parse_options("importance=iis\n", &problems).importance;
  EXPECT_TRUE(problems.empty());
  const ImportanceOptions meant;
  EXPECT_EQ(said.selector, meant.selector);
  EXPECT_EQ(said.selection.warm_up, meant.selection.warm_up);
  EXPECT_EQ(said.selection.full_every, meant.selection.full_every);
  EXPECT_EQ(said.selection.beta, meant.selection.beta);
  EXPECT_EQ(said.selection.history, meant.selection.history);
  EXPECT_EQ(said.selection.seed, meant.selection.seed);
  EXPECT_EQ(said.seed_given, meant.seed_given);
  EXPECT_DOUBLE_EQ(said.h_share, meant.h_share);
  EXPECT_EQ(said.substitution, meant.substitution);
  EXPECT_DOUBLE_EQ(said.most_substituted, meant.most_substituted);
}

TEST(Parse, ThereIsNoSubstituteWhereNothingIsSelected) {
  std::vector<std::string> problems;
  const SessionOptions options = parse_options("importance=loss:substitute=any\n", &problems);
  EXPECT_EQ(options.importance.substitution, ImportanceOptions::Substitution::kNever);
  EXPECT_FALSE(options.selects);
  ASSERT_EQ(problems.size(), 1U);
}

TEST(Parse, NoBytesMakeItStumble) {
  std::mt19937 random(5);
  const std::string hello = packet(
      MessageKind::kHello, bytes_of(protocol::Hello{1, 0}) + "size=50M\nthreshold=60\nlog=warn\n");
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = hello.substr(0, random() % (hello.size() + 1));
    for (int flips = static_cast<int>(random() % 4); flips > 0 && !bytes.empty(); --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const Message message = parse(bytes);
    if (const auto* bad = std::get_if<BadMessage>(&message)) {
      ASSERT_FALSE(bad->reason.empty());
      ASSERT_EQ(bad->reason.find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sluice::optimizer
