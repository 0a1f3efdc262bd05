#include "preload/session/exchange.h"

#include "preload/base/sys.h"

namespace sluice::preload {

constinit Patience g_patience;
constinit Place g_place;
constinit Answer g_answer;

void learn_from(Asked asked, uint64_t waited_ns) {
  const uint64_t now = sys::now_ns();
  if (asked == Asked::kLate) {
    g_patience.wasted(now, waited_ns);
  } else if (asked == Asked::kAnswered) {
    g_patience.answered(now);
  }
}

Asked ask_patiently(protocol::MessageKind kind, const void* body, size_t size, const void* text,
                    size_t text_size, int fd, uint64_t most, bool insist) {
  const uint64_t begin = sys::now_ns();
  g_answer.fd = -1;
  const uint64_t wait_ns = insist ? most : g_patience.left(begin, most);
  const Asked asked =
      ask(g_place.socket, begin + wait_ns, {}, kind, body, size, text, text_size, fd, &g_answer);
  learn_from(asked, sys::now_ns() - begin);
  return asked;
}

}  // namespace sluice::preload
