#include "kernels/mirror.hpp"

namespace hcp {

Mirror::Mirror(MemoryLedger& ledger, MemoryCategory category, std::int64_t bytes, MemorySource& source)
    : source_{&source}, buffer_{ledger, category, bytes, source} {
  if (bytes > 0 && source.space() != MemorySpace::host) {
    image_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
  }
}

void Mirror::to_kernel() {
  if (image_) {
    source_->copy_from_host(buffer_.data(), image_.get(), buffer_.bytes());
  }
}

void Mirror::to_host() {
  if (image_) {
    source_->copy_to_host(image_.get(), buffer_.data(), buffer_.bytes());
  }
}

}  // namespace hcp
