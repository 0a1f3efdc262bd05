// Which files are held open ahead of a program that starts.
#include "policy/folders/open_window.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace sluice::policy {
namespace {

std::vector<uint32_t> opened(OpenWindow* window) {
  std::vector<uint32_t> files;
  for (std::optional<uint32_t> file = window->next(); file; file = window->next()) {
    files.push_back(*file);
  }
  return files;
}

std::vector<uint32_t> passed(OpenWindow* window, uint32_t file) {
  std::vector<uint32_t> closed;
  window->passed(file, &closed);
  return closed;
}

TEST(OpenWindow, IsInFrontOfTheFileThatWasOpenedLast) {
  OpenWindow window(1000);
  EXPECT_EQ(opened(&window).size(), OpenWindow::kAhead);
  EXPECT_TRUE(window.holds(0));
  for (uint32_t file = 0; file < 1000; ++file) {
    if (window.holds(file)) window.release(file);
    EXPECT_TRUE(passed(&window, file).empty());
    const std::vector<uint32_t> more = opened(&window);
    EXPECT_EQ(more.size(), file + OpenWindow::kAhead < 1000 ? 1U : 0U) << file;
  }
}

TEST(OpenWindow, ClosesWhatTheProgramHasGonePast) {
  OpenWindow window(1000);
  opened(&window);
  EXPECT_TRUE(passed(&window, 10).empty());
  const std::vector<uint32_t> closed = passed(&window, 40);
  EXPECT_EQ(closed.size(), 41 - OpenWindow::kBehind);
  for (const uint32_t file : closed) EXPECT_FALSE(window.holds(file));
  EXPECT_TRUE(passed(&window, 3).empty()) << "an earlier file moves nothing back";
  EXPECT_EQ(opened(&window).back(), 40 + OpenWindow::kAhead);
}

// One file of elsewhere is an exception; two are where the program is.
TEST(OpenWindow, JumpsToWhereTheProgramIs) {
  OpenWindow window(1000);
  opened(&window);
  EXPECT_TRUE(passed(&window, 900).empty());
  EXPECT_TRUE(window.holds(0));
  passed(&window, 5);
  EXPECT_TRUE(passed(&window, 700).empty());
  EXPECT_TRUE(passed(&window, 700).empty()) << "the same one again";
  EXPECT_FALSE(passed(&window, 702).empty());
  EXPECT_FALSE(window.holds(10));
  EXPECT_EQ(opened(&window).front(), 703U);
}

TEST(OpenWindow, NeverHoldsMoreThanItMay) {
  OpenWindow window(10'000);
  std::set<uint32_t> held;
  for (uint32_t file = 0; file < 10'000; file += 7) {
    for (const uint32_t one : opened(&window)) held.insert(one);
    EXPECT_LE(held.size(), OpenWindow::kAhead + OpenWindow::kBehind);
    for (const uint32_t one : passed(&window, file)) held.erase(one);
  }
}

}  // namespace
}  // namespace sluice::policy
