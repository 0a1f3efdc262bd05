// Passes each message of the control socket to the service that handles its kind. Core thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "optimizer/control/parse.h"
#include "optimizer/loop/server.h"

namespace sluice::optimizer {

class Dispatcher {
 public:
  // Messages of these kinds are passed to service->handle(const Peer&, const Kind&, descriptors).
  // `service` outlives the dispatcher's use.
  template <typename... Kinds, typename Service>
  void add(Service* service) {
    ((std::get<Handler<Kinds>>(handlers_) =
          [service](const Peer& peer, const Kinds& message, std::vector<UniqueFd> fds) {
            service->handle(peer, message, std::move(fds));
          }),
     ...);
  }

  // REQUIRES: each kind of message has a service.
  void dispatch(const Peer& peer, std::span<const std::byte> packet,
                std::vector<UniqueFd> fds) const {
    std::visit(
        [&](const auto& message) {
          std::get<Handler<std::decay_t<decltype(message)>>>(handlers_)(peer, message,
                                                                        std::move(fds));
        },
        parse_packet(packet));
  }

 private:
  template <typename Kind>
  using Handler = std::function<void(const Peer&, const Kind&, std::vector<UniqueFd>)>;
  template <typename Variant>
  struct Table;
  template <typename... Kinds>
  struct Table<std::variant<Kinds...>> {
    using Type = std::tuple<Handler<Kinds>...>;
  };

  Table<Message>::Type handlers_;
};

}  // namespace sluice::optimizer
