#pragma once

namespace lockkeeper::detail {

/// Holds the product of any two 64-bit numbers.
__extension__ using Wide = __int128;

}  // namespace lockkeeper::detail
