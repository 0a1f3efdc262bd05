// Files that follow each other in a numbered row, as the shards of a model do: while one is read,
// the next one is opened, so that its beginning can be read before the job asks for it. Only in a
// row that the job has begun with its first file, or continued. Core thread only.
#pragma once

#include <map>
#include <string>

#include "optimizer/io/beside.h"
#include "optimizer/services/service.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Sequels : Service {
 public:
  explicit Sequels(const Service& service) : Service(service) {}

  // Opens what follows the files of which half was read since the last call.
  void look();
  void remove_session(policy::SessionId session) { last_.erase(session); }

 private:
  void found(policy::FileId before, policy::SessionId session, const std::string& path,
             Beside beside);

  std::map<policy::SessionId, std::string> last_;  // path of the file that was read last
};

}  // namespace sluice::optimizer
