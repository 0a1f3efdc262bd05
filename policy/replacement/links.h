// Doubly linked lists of samples, 8 bytes a sample: the links are in one flat vector, which several
// lists may share; a sample is in at most one of them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

struct Link {
  SampleId before = kNoSample, after = kNoSample;
};

class SampleList {
 public:
  explicit SampleList(std::vector<Link>* links) : links_(links) {}

  SampleId front() const { return front_; }  // kNoSample if the list is empty
  SampleId back() const { return back_; }

  // REQUIRES: the sample is in no list, and the vector has a link for it.
  void push_front(SampleId sample) { insert(sample, kNoSample, front_); }
  void push_back(SampleId sample) { insert(sample, back_, kNoSample); }

  // REQUIRES: the sample is in this list.
  void remove(SampleId sample) {
    const Link link = (*links_)[sample];
    (link.before == kNoSample ? front_ : (*links_)[link.before].after) = link.after;
    (link.after == kNoSample ? back_ : (*links_)[link.after].before) = link.before;
  }

 private:
  void insert(SampleId sample, SampleId before, SampleId after) {
    (*links_)[sample] = {before, after};
    (before == kNoSample ? front_ : (*links_)[before].after) = sample;
    (after == kNoSample ? back_ : (*links_)[after].before) = sample;
  }

  std::vector<Link>* const links_;
  SampleId front_ = kNoSample, back_ = kNoSample;
};

}  // namespace sluice::policy
