// A client that reports samples to a real optimizer, as a job's library does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/optimizer_client.h"

namespace sluice::test {

using protocol::EventKind;
using protocol::MessageKind;
using protocol::SessionMetric;

inline constexpr uint64_t kBytes = 16 * 4096;  // of a sample

inline UniqueFd memory_of(const std::vector<uint32_t>& indices) {
  UniqueFd fd(memfd_create("order", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(indices.size() * sizeof(uint32_t));
  EXPECT_EQ(write(fd.get(), indices.data(), static_cast<size_t>(size)), size);
  return fd;
}

struct Job : Client {
  explicit Job(const OptimizerProcess& process, const std::string& options = "")
      : socket(process.socket()) {
    EXPECT_TRUE(hello(socket, options));
    EXPECT_TRUE(claim());
  }
  std::optional<Reply> ask(MessageKind kind, const std::string& body, int fd = -1) const {
    const Connection connection(socket);
    connection.send(kind, body, fd);
    return connection.receive();
  }
  // The dataset's id; 0 if it was refused.
  uint32_t dataset(uint64_t samples, const std::string& name = "set") const {
    const protocol::Dataset body{welcome().session, welcome().token, samples};
    const auto reply = ask(MessageKind::kDataset, bytes_of(body) + name);
    if (!reply || reply->header.kind != MessageKind::kDatasetKnown) return 0;
    protocol::DatasetKnown known{};
    memcpy(&known, reply->body.data(), std::min(sizeof known, reply->body.size()));
    return known.dataset;
  }
  // The id of a file that is followed from now on; 0 if it was refused.
  uint32_t follow(const std::string& path) {
    const auto known = file(path, 0);
    return known ? known->file : 0;
  }
  bool order(const protocol::Samples& message, int fd) const {
    const auto reply = ask(MessageKind::kOrder, bytes_of(message), fd);
    return reply && reply->header.kind == MessageKind::kDone;
  }
  protocol::Samples message_about(uint32_t set, uint32_t epoch, uint64_t count) const {
    protocol::Samples message{};
    message.session = welcome().session;
    message.token = welcome().token;
    message.dataset = set;
    message.epoch = epoch;
    message.count = count;
    return message;
  }
  bool order(uint32_t set, uint32_t epoch, const std::vector<uint32_t>& indices) const {
    return order(message_about(set, epoch, indices.size()), memory_of(indices).get());
  }
  void event(EventKind kind, uint32_t set, uint64_t index) {
    protocol::EventData data;
    data.kind = kind;
    data.file = set;
    data.address = protocol::sample_key(set, index);
    push(data);
  }
  // `each`: files of a sample.
  bool locate_files(uint32_t set, const std::vector<std::string>& paths, uint32_t each = 1) const {
    const UniqueFd fd(memfd_create("paths", MFD_CLOEXEC));
    protocol::Samples message = message_about(set, 0, paths.size() / std::max(each, 1U));
    message.each = each;
    for (const std::string& path : paths) {
      message.bytes += path.size() + 1;
      EXPECT_EQ(write(fd.get(), path.c_str(), path.size() + 1),
                static_cast<ssize_t>(path.size() + 1));
    }
    const auto reply = ask(MessageKind::kLocate, bytes_of(message), fd.get());
    return reply && reply->header.kind == MessageKind::kDone;
  }
  // Reports that these files were opened while these samples were read.
  bool seen(uint32_t set, const std::vector<std::pair<uint32_t, std::string>>& files) const {
    std::string text;
    for (const auto& [sample, path] : files) {
      text.append(reinterpret_cast<const char*>(&sample), sizeof sample);
      text.append(path.c_str(), path.size() + 1);
    }
    const auto reply =
        ask(MessageKind::kSeen, bytes_of(message_about(set, 0, files.size())) + text);
    return reply && reply->header.kind == MessageKind::kDone;
  }
  // The percentage of the samples that the optimizer knows; above 100 if it does not answer.
  uint32_t located(uint64_t samples, const std::string& name = "set") const {
    const protocol::Dataset body{welcome().session, welcome().token, samples};
    const auto reply = ask(MessageKind::kDataset, bytes_of(body) + name);
    protocol::DatasetKnown known{0, 101};
    if (reply) memcpy(&known, reply->body.data(), std::min(sizeof known, reply->body.size()));
    return known.located;
  }
  bool locate(uint32_t set, uint32_t file, const std::vector<protocol::Place>& places,
              uint64_t first = 0, uint64_t less = 0) const {
    const UniqueFd fd(memfd_create("places", MFD_CLOEXEC));
    const size_t size = places.size() * sizeof places.front();
    EXPECT_EQ(write(fd.get(), places.data(), size), static_cast<ssize_t>(size));
    protocol::Samples message = message_about(set, 0, places.size());
    message.first = first;
    message.file = file;
    message.bytes = size - less;
    const auto reply = ask(MessageKind::kLocateExtents, bytes_of(message), fd.get());
    return reply && reply->header.kind == MessageKind::kDone;
  }
  void part(uint32_t set, uint64_t index, uint32_t file, uint64_t offset, uint64_t bytes) {
    protocol::EventData part;
    part.kind = EventKind::kSamplePart;
    part.file = file;
    part.offset = offset;
    part.length = bytes;
    part.address = protocol::sample_key(set, index);
    push(part);
  }
  void read_sample(uint32_t set, uint64_t index, uint32_t file, uint64_t bytes = kBytes) {
    event(EventKind::kSampleBegin, set, index);
    part(set, index, file, place_of(index) * bytes, bytes);
    event(EventKind::kSampleEnd, set, index);
  }
  // Neighbours change places: no sample's place follows from those of others.
  static uint64_t place_of(uint64_t index) { return index ^ 1; }
  // Events and messages come by different ways: an order may overtake them.
  bool knows(uint64_t samples) const {
    const std::string text = "\"known\":" + std::to_string(samples) + ",";
    return eventually([&] { return status(socket).find(text) != std::string::npos; });
  }
  const std::string socket;
};

// Another job gets what it should.
inline void expect_another_job_is_served(const OptimizerProcess& process,
                                         const TempFolder& folder) {
  Job honest(process);
  const std::string path = folder.cold_file("honest", 64 * kBytes);
  const uint32_t file = honest.follow(path);
  const uint32_t set = honest.dataset(64, "honest");
  ASSERT_NE(file, 0U);
  ASSERT_NE(set, 0U);
  for (uint32_t i = 0; i < 64; ++i) honest.read_sample(set, i, file);
  std::vector<uint32_t> order(64);
  for (uint32_t i = 0; i < 64; ++i) order[i] = i * 7 % 64;
  evict(path);
  // Events come by another way than messages, and there may be many before them.
  EXPECT_TRUE(eventually([&] { return honest.metric(SessionMetric::events_seen) >= 3 * 64; }, 60));
  ASSERT_TRUE(honest.order(set, 1, order));
  EXPECT_TRUE(
      eventually([&] { return honest.metric(SessionMetric::precached_bytes) >= 64 * kBytes; }, 60));
  EXPECT_TRUE(honest.bye());
}

}  // namespace sluice::test
