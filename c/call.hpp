// What every function of the C interface needs: C's tensors as views, exceptions as statuses.
#pragma once

#include <new>
#include <span>
#include <string>

#include "c/neuron_kernels.h"
#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "neuron_kernels/core/view.hpp"

namespace neuron_kernels::c {

/// The message of this thread's last failure.
std::string& last_error();

/// Runs `body`; no exception leaves it.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    try {
      body();
      return NEURON_KERNELS_OK;
    } catch (const std::bad_alloc&) {
      last_error() = "out of memory";
      return NEURON_KERNELS_OUT_OF_MEMORY;
    } catch (const ShapeError& error) {
      last_error() = error.what();
      return NEURON_KERNELS_BAD_ARGUMENT;
    } catch (const std::exception& error) {
      last_error() = error.what();
      return NEURON_KERNELS_FAILED;
    }
  } catch (...) {  // not even the message fits into memory
    return NEURON_KERNELS_OUT_OF_MEMORY;
  }
}

inline View view(const char* call, const char* argument, const neuron_kernels_tensor* t) {
  if (t == nullptr) return {};
  if (t->dtype < NEURON_KERNELS_F32 || t->dtype > NEURON_KERNELS_F16) {
    shape_error(call, argument, text("dtype ", t->dtype, "; allowed are 0 (f32), 1 (bf16), 2 (f16)"));
  }
  if (t->rank < 1 || t->rank > max_rank) {
    shape_error(call, argument, text("rank ", t->rank, "; allowed are ranks 1 to ", max_rank));
  }
  const auto rank = static_cast<std::size_t>(t->rank);
  const Layout layout(std::span(t->shape, rank), std::span(t->stride, rank));
  if (t->data == nullptr && !layout.empty()) {
    shape_error(call, argument, text("data is NULL for a shape of ", shape_text(layout)));
  }
  return {t->data, static_cast<DType>(t->dtype), layout};
}

inline Act activation(const char* call, std::int32_t value) {
  constexpr Act all[] = {Act::identity,  Act::relu,    Act::silu, Act::gelu,
                         Act::gelu_tanh, Act::sigmoid, Act::tanh};
  if (value < 0 || value > NEURON_KERNELS_TANH) {
    shape_error(call, "activation", text(value, "; allowed are 0 to ", int{NEURON_KERNELS_TANH}));
  }
  return all[value];
}

}  // namespace neuron_kernels::c
