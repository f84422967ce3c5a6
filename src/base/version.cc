#include "base/version.h"

namespace linblock {

constinit const std::string_view kVersion = LINBLOCK_VERSION;

}  // namespace linblock
