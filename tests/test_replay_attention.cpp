// replay of the forms of flash_attention that are made for the chip.
#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/flash_attention_strip.hpp"
#include "replaying.hpp"

namespace test {
namespace {

/// arguments q, k, v, dst, sums, lse of two query heads on one kv head.
template <class Body>
void on_shapes(const char* kernel, const Body& body) {
  on_each_chip([&](const nk::Limits& l) {
    for (const auto& [q_len, kv_len] :
         {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {700, 900}, {512, 2048}, {130, 130}}) {
      for (const bool causal : {false, true}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const std::vector<Argument> arguments = {{"q", dtype, {1, 2, q_len, 64}},
                                                   {"k", dtype, {1, 1, kv_len, 64}},
                                                   {"v", dtype, {1, 1, kv_len, 64}},
                                                   {"dst", dtype, {1, 2, q_len, 64}, true},
                                                   {"sums", DType::f32, {1, 2, q_len, 1}, true},
                                                   {"lse", DType::f32, {1, 2, q_len, 1}, true}};
          check_replay(kernel, l, arguments, [&](auto& nc, const auto& h) { body(nc, h, causal, l); });
        }
      }
    }
  });
}

TEST_CASE("replay: attention with keys on partitions") {
  on_shapes("shared_shift_attention", [](auto& nc, const auto& h, bool causal, const nk::Limits& l) {
    using T = TargetOf<decltype(nc)>;
    const nk::AttentionShape shape{1, 2, 1, h[0].dim(2), h[1].dim(2), 64, 64};
    const auto blocking = nk::SharedShiftBlocking::default_for(l, shape);
    blocking.check(l);
    nk::SharedShiftArgs<T> args{.q = h[0], .k = h[1], .v = h[2], .dst = h[3], .sums = h[4], .lse = h[5]};
    args.scale = 0.125f, args.causal = causal;
    shared_shift_attention_kernel(nc, args, blocking);
  });
}

TEST_CASE("replay: attention in strips") {
  on_shapes("strip_attention", [](auto& nc, const auto& h, bool causal, const nk::Limits&) {
    using T = TargetOf<decltype(nc)>;
    nk::AttentionArgs<T> args{.q = h[0], .k = h[1], .v = h[2], .dst = h[3], .lse = h[5]};
    args.scale = 0.125f, args.causal = causal;
    const auto column = nc.sbuf("column", 1, 1, DType::f32);  // sums is shared_shift_attention's
    nc.fill(column, 0.f);
    nc.store(h[4].at(nc.index(0)).at(nc.index(0)).rows(nc.index(0), 1), column);
    strip_attention_kernel(nc, args, {});
  });
}

}  // namespace
}  // namespace test
