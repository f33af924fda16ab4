// PoisonedHost: Host whose fresh tiles hold NaN, so that a result shows what was read before it was written.
//
// For tests and for replays of a Program; as on AWS's own simulator (SDK nki/guides/nki_simulator.rst). What the
// kernel writes to should begin as NaN, too.
#pragma once

#include <limits>

#include "neuron_kernels/host/host.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

class PoisonedHost : public Host {
 public:
  using Host::Host;

  Tile sbuf(const char* name, int p, int f, DType dtype, const Where& where = Where::current()) {
    return poisoned(Host::sbuf(name, p, f, dtype, where));
  }
  Tile psum(const char* name, int p, int f, DType dtype = DType::f32, const Where& where = Where::current()) {
    return poisoned(Host::psum(name, p, f, dtype, where));
  }
  TileArray sbuf_array(const char* name, Index n, int p, int f, DType dtype,
                       const Where& where = Where::current()) {
    return poisoned(Host::sbuf_array(name, n, p, f, dtype, where), n);
  }
  TileArray psum_array(const char* name, Index n, int p, int f, DType dtype = DType::f32,
                       const Where& where = Where::current()) {
    return poisoned(Host::psum_array(name, n, p, f, dtype, where), n);
  }
  TileArray input_array(const char* name, Index n, int p, int f, DType dtype,
                        const Where& where = Where::current()) {
    TileArray a = sbuf_array(name, n, p, f, dtype, where);
    a.slot.info.read_only = true;
    return a;
  }
  /// Never an alias of dst: what lies there must not look written.
  Tile staged(const char* name, const Hbm& dst, const Where& where = Where::current()) {
    return sbuf(name, static_cast<int>(dst.dim(0)), static_cast<int>(dst.dim(1)), dst.dtype(), where);
  }

 private:
  Tile poisoned(const Tile& t) {
    fill(t, std::numeric_limits<float>::quiet_NaN());
    return t;
  }
  TileArray poisoned(TileArray a, Index n) {
    for (Index i = 0; i < n; ++i) (void)poisoned(a[i]);
    return a;
  }
};

static_assert(Target<PoisonedHost>);

}  // namespace host
using host::PoisonedHost;
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
