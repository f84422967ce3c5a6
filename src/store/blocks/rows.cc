#include "store/blocks/rows.h"

namespace linblock {

void Rows::hold(const As& as) {
  if (source_ && (as_ == as || (as.only.empty() && source_->serves(*as.store, as.held, as.decode_blocks)))) return;
  release();
  as_ = as;
  source_ = std::make_unique<BlockSource>(*as.store, as.held, as.window_bytes, as.team, as.only, as.decode_blocks,
                                          as.kept_bytes);
}

void Rows::release() {
  earlier_ = costs();
  source_.reset();
}

ReadCosts Rows::costs() const {
  ReadCosts sum = earlier_;
  if (source_) sum += source_->costs();
  return sum;
}

}  // namespace linblock
