// UCX's configuration as Medley uses it: what the user set (UCX_… and ucx.conf), and our defaults for the rest.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

namespace medley::ucx {

using Config = std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)>;

/// `one_host`: all ranks of the context share memory.
Config read_config(bool one_host);

/// The value of a variable (named without UCX_) as text; "" when there is no such variable.
std::string value_of(const Config& config, const std::string& name);
/// Messages of fewer bytes are in the receiver's segment once they are complete for their sender, and are not
/// acknowledged. 0 where that is not known: another transport than shared memory, or a limit that UCX chooses.
std::size_t copied_below(const Config& config);

}  // namespace medley::ucx
