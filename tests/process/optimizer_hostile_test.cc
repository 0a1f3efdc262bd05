// Whatever a job says of samples, in its ring or in messages: the optimizer refuses it, lives, and
// helps others as before.
#include "policy/util/random.h"
#include "tests/process/samples_client.h"

namespace sluice::test {
namespace {

constexpr uint64_t kSamples = 1000;

// Numbers that are right, nearly right, and as large as they come.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : random_(mixed(seed)) {}
  uint64_t below(uint32_t end) { return random_.below(end); }
  uint64_t any() {
    constexpr uint64_t kEdges[] = {0,
                                   1,
                                   kSamples - 1,
                                   kSamples,
                                   4096,
                                   protocol::kMaxSamples - 1,
                                   protocol::kMaxSamples,
                                   (1ULL << protocol::kSampleIndexBits) - 1,
                                   1ULL << 62,
                                   UINT64_MAX};
    if (random_.below(2) == 0) return random_.below(kSamples);
    return kEdges[random_.below(std::size(kEdges))];
  }

 private:
  Random random_;
};

class Hostile : public testing::TestWithParam<uint64_t> {
 protected:
  void expect_service() const { expect_another_job_is_served(process_, folder_); }
  const TempFolder folder_;
  OptimizerProcess process_;
};

TEST_P(Hostile, EventsOfAnySample) {
  Numbers numbers(GetParam());
  {
    Job job(process_);
    const std::string path = folder_.cold_file("data", kSamples * 4096);
    const auto file = static_cast<uint32_t>(job.follow(path));
    const uint32_t set = job.dataset(kSamples);
    ASSERT_NE(set, 0U);
    const auto id = [&](uint32_t right) {
      return numbers.below(3) != 0 ? right : static_cast<uint32_t>(numbers.any());
    };
    uint64_t pushed = 0;
    for (int i = 0; i < 20000; ++i) {
      protocol::EventData event;
      event.kind = static_cast<EventKind>(numbers.below(14));
      const bool of_set =
          event.kind == EventKind::kSampleBegin || event.kind == EventKind::kSampleEnd;
      event.file = id(of_set ? set : file);
      event.offset = numbers.any();
      event.length = numbers.any();
      event.address = numbers.below(4) != 0
                          ? protocol::sample_key(id(set), numbers.below(kSamples + 1))
                          : numbers.any();
      event.flags = static_cast<uint16_t>(numbers.any());
      pushed += job.push(event) ? 1 : 0;  // a full ring drops
    }
    EXPECT_GT(pushed, 100U);
    EXPECT_TRUE(eventually([&] { return job.metric(SessionMetric::events_bad) > 0; }, 30));
    EXPECT_FALSE(status(process_.socket()).empty());
  }
  EXPECT_FALSE(process_.ended());
  expect_service();
}

TEST_P(Hostile, MessagesOfAnySamples) {
  constexpr MessageKind kKinds[] = {MessageKind::kOrder,         MessageKind::kLocate,
                                    MessageKind::kLocateExtents, MessageKind::kLocateKeys,
                                    MessageKind::kImportance,    MessageKind::kSelect,
                                    MessageKind::kDeliver,       MessageKind::kSeen};
  Numbers numbers(GetParam());
  {
    Job job(process_);
    const uint32_t file = job.follow(folder_.cold_file("data", kSamples * 4096));
    const uint32_t set = job.dataset(kSamples);
    ASSERT_NE(set, 0U);
    for (int i = 0; i < 600; ++i) {
      const UniqueFd memory(memfd_create("any", MFD_CLOEXEC));
      std::vector<uint64_t> words(numbers.below(2048));
      for (uint64_t& word : words) word = numbers.any();
      const auto size = static_cast<ssize_t>(words.size() * sizeof(uint64_t));
      ASSERT_EQ(write(memory.get(), words.data(), static_cast<size_t>(size)), size);
      protocol::Samples message =
          job.message_about(numbers.below(4) != 0 ? set : 0, 0, numbers.any());
      message.epoch = static_cast<uint32_t>(numbers.any());
      message.first = numbers.any();
      message.bytes = numbers.below(4) != 0 ? static_cast<uint64_t>(size) : numbers.any();
      if (numbers.below(2) != 0) message.count = message.bytes / (4 << numbers.below(3));
      message.file = numbers.below(4) != 0 ? file : static_cast<uint32_t>(numbers.any());
      message.flags = static_cast<uint32_t>(numbers.below(5));
      message.group = numbers.any();
      const auto reply =
          job.ask(kKinds[numbers.below(std::size(kKinds))], bytes_of(message), memory.get());
      ASSERT_TRUE(reply) << "no answer to message " << i << " of seed " << GetParam();
    }
  }
  EXPECT_FALSE(process_.ended());
  expect_service();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Hostile, testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace sluice::test
