// The book of importance asked as the optimizer asks it, but all at once.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/importance/book.h"

namespace sluice::test {

// By sample; empty: refused.
inline std::vector<bool> selected(policy::ImportanceBook* book,
                                  const policy::ImportanceBook::Requester& requester,
                                  uint32_t epoch, const policy::ImportanceOptions& options,
                                  std::vector<uint8_t> candidates, uint64_t capacity) {
  const auto choice = book->request(requester, epoch, options, std::move(candidates));
  if (choice == nullptr) return {};
  policy::choose(choice.get());
  return book->begin(requester, choice, capacity) ? choice->chosen : std::vector<bool>();
}

}  // namespace sluice::test
