#include "cli/run_arguments.h"

#include "protocol/options.h"

namespace sluice::cli {
namespace {

const protocol::OptionInfo* find_flag(const std::string& flag) {
  for (const protocol::OptionInfo& info : protocol::kOptions) {
    if (flag == info.flag) return &info;
  }
  return nullptr;
}

void add(RunArguments* split, const std::string& option, const std::string& value) {
  // To the parser, "--flag=" lacks its value, and "--flag" "-x" are two options.
  if (value.empty()) {
    split->options.push_back(option);
    split->options.push_back(value);
  } else {
    split->options.push_back(option + "=" + value);
  }
}

}  // namespace

RunArguments split_run_arguments(const std::vector<std::string>& arguments) {
  RunArguments split;
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const size_t equals = word.find('=');
    if (word.compare(0, 2, "--") == 0 && equals != std::string::npos) {
      add(&split, word.substr(0, equals), word.substr(equals + 1));
      continue;
    }
    const protocol::OptionInfo* info =
        word.compare(0, 2, "--") == 0 ? find_flag(word.substr(2)) : nullptr;
    if (info == nullptr) {
      split.options.push_back(word);
      continue;
    }
    const bool last = at + 1 == arguments.size();
    if (info->kind == protocol::OptionKind::kSwitch) {
      bool on = true;
      if (!last && protocol::parse_switch(arguments[at + 1].c_str(), &on)) ++at;
      add(&split, word, on ? "on" : "off");
    } else if (last) {
      split.options.push_back(word);
    } else {
      add(&split, word, arguments[++at]);
    }
  }
  split.command.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  return split;
}

}  // namespace sluice::cli
