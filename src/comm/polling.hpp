/// The pauses of a host that looks again and again whether something has come.
#pragma once

namespace hcp {

/// One wait, from its first look on.
class Polling {
 public:
  /// To be called after each look in vain. The first looks follow each other at once; then the core is
  /// offered to others, and after a while the thread sleeps between the looks.
  /// @return seconds since the first look; 0 as long as the looks follow each other at once
  double pause();

 private:
  int looks_ = 0;
  double begin_s_ = 0.0;
};

}  // namespace hcp
