// limits.hpp against itself: numbers that AWS publishes apart from each other must agree.
#include "catch.hpp"
#include "neuron_kernels/core/limits.hpp"

namespace test {
namespace {

namespace nk = neuron_kernels;

bool near(double a, double b, double relative) { return a > b * (1 - relative) && a < b * (1 + relative); }

const nk::Limits* const chips[] = {&nk::trn1, &nk::trn2, &nk::trn3};

TEST_CASE("limits: memories have the sizes that the architecture guides print") {
  constexpr std::int64_t mib = 1 << 20;
  CHECK(nk::trn1.sbuf_bytes() == 24 * mib);
  CHECK(nk::trn2.sbuf_bytes() == 28 * mib);
  CHECK(nk::trn3.sbuf_bytes() == 32 * mib);
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    CHECK(l->psum_bytes() == 2 * mib);
    CHECK(l->psum_banks * l->psum_bank_bytes == 16 * 1024);
    CHECK(l->psum_bank_f32() == 512);
    CHECK((l->psum_bank_bf16 == 0 || l->psum_bank_bf16 * 2 == l->psum_bank_bytes));
    CHECK(l->sbuf_usable_bytes < l->sbuf_partition_bytes);
    CHECK(l->psum_access_elements == l->psum_banks * l->psum_bank_f32());  // all of PSUM in f32
    CHECK(l->sbuf_access_elements * 4 >= l->sbuf_partition_bytes);         // all of SBUF in f32
  }
  CHECK(nk::trn2.sbuf_usable_bytes == 212728);  // as nki-library prints it
}

TEST_CASE("limits: a matmul's result fits the banks that it may write") {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2}) CHECK(l->gemm_moving_fmax == l->psum_bank_f32());
  CHECK(nk::trn3.gemm_moving_fmax == nk::trn3.psum_banks * nk::trn3.psum_bank_f32());
  for (const nk::Limits* l : chips) CHECK(l->gemm_stationary_fmax == l->partitions);
}

TEST_CASE("limits: a multiply-add per cell of the array and cycle is the printed peak") {
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    const double tflops = 2.0 * l->partitions * l->gemm_stationary_fmax * l->tensor.ghz / 1000;
    CHECK(near(l->core_tflops_16bit, tflops, 0.01));
    CHECK(near(l->core_tflops_f32, tflops / l->f32_passes, 0.02));  // printed without decimals
    CHECK(l->tensor.elements_16bit == 2 * l->partitions);
  }
  CHECK(near(nk::trn2.core_tflops_fp8, 2 * nk::trn2.core_tflops_16bit, 0.01));
  CHECK(near(nk::trn3.core_tflops_fp8, 4 * nk::trn3.core_tflops_16bit, 0.01));
}

TEST_CASE("limits: a chip is its cores") {
  // The pages print more for a chip than for its cores: trn1 3 %, trn2 6 %, trn3 6 %; f32 up to 15 %.
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    CHECK(l->chip_tflops_16bit >= l->cores * l->core_tflops_16bit);
    CHECK(near(l->chip_tflops_16bit, l->cores * l->core_tflops_16bit, 0.07));
    CHECK(near(l->chip_tflops_fp8, l->cores * l->core_tflops_fp8, 0.07));
    CHECK(near(l->chip_tflops_f32, l->cores * l->core_tflops_f32, 0.16));
    CHECK(l->hbm_bytes % l->hbm_stacks == 0);
    CHECK(l->cores % l->hbm_stacks == 0);
  }
}

TEST_CASE("limits: DMA") {
  CHECK(near(nk::trn1.dma_gb_per_s(), 272, 1e-9));
  CHECK(near(nk::trn2.dma_gb_per_s(), 368, 1e-9));
  CHECK(near(nk::trn3.dma_gb_per_s(), 528, 1e-9));
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    CHECK(l->dma_engine_gb_per_s < l->dma_engine_peak_gb_per_s);
    CHECK(near(l->chip_dma_gb_per_s, l->cores * l->dma_engines * l->dma_engine_peak_gb_per_s, 0.15));
  }
}

TEST_CASE("limits: engines take at least one element per partition and cycle") {
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    for (const nk::EngineRate e : {l->tensor, l->vector, l->scalar, l->gpsimd}) {
      CHECK(e.ghz > 0.9);
      CHECK(e.elements >= l->partitions);
      CHECK(e.elements_16bit >= e.elements);
      CHECK(e.elements_16bit % l->partitions == 0);
    }
  }
}

TEST_CASE("limits: where an access may start") {
  for (const nk::Limits* l : chips) {
    CAPTURE(l->chip);
    CHECK(l->start_partition_ok(0, 128));
    CHECK(l->start_partition_ok(0, 65));
    CHECK_FALSE(l->start_partition_ok(64, 65));
    CHECK(l->start_partition_ok(64, 64));
    CHECK(l->start_partition_ok(64, 33));
    CHECK_FALSE(l->start_partition_ok(32, 33));
    for (const int first : {0, 32, 64, 96}) CHECK(l->start_partition_ok(first, 32));
    CHECK_FALSE(l->start_partition_ok(16, 1));
    CHECK_FALSE(l->start_partition_ok(128, 1));
    CHECK_FALSE(l->start_partition_ok(-32, 1));
  }
  CHECK(nk::host_limits.start_partition_ok(16, 1));
}

TEST_CASE("limits: the host has none") {
  CHECK(nk::host_limits.is_host());
  for (const nk::Limits* l : chips) CHECK_FALSE(l->is_host());
}

}  // namespace
}  // namespace test
