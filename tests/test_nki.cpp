// NKI source of every library kernel on every chip: names, loops and buffers in the text here; executed by
// tests/nki, for which the cases are written.
#include "neuron_kernels/nki/emit.hpp"

#include "neuron_kernels/nki/references.hpp"
#include "nki_cases.hpp"
#include "nki_programs.hpp"
#include "reference/flash_attention.hpp"
#include "reference/fused_mlp.hpp"
#include "reference/layernorm.hpp"
#include "reference/matmul.hpp"
#include "reference/rmsnorm.hpp"

namespace test {
namespace {

using reference::Approx;

constexpr DType case_dtypes[] = {DType::f32, DType::bf16};

template <class F>
void on_each_chip(const F& f) {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) f(*l);
}

std::string case_name(const std::string& kernel, const nk::Limits& l, DType dtype, const std::string& what) {
  return nk::text(kernel, "-", l.chip, "-", name_of(dtype), "-", what);
}

TEST_CASE("nki cases: matmul", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const Size& s : {Size{128, 512, 128}, {133, 517, 130}, {300, 7, 5}, {1, 1, 1}, {3, 2, 0}}) {
        for (const float beta : {0.f, 0.25f}) {
          const auto arguments = matmul_arguments(dtype, s);
          const bool full = beta != 0.f;
          const Act act = full ? Act::gelu : Act::identity;
          const Program program = recorded(
              l, arguments,
              matmul_body(nk::MatmulBlocking::default_for(l, {s.m, s.n, s.k}), beta, full, false, act, full));
          write_case(case_name("matmul", l, dtype, nk::text(s.m, "x", s.n, "x", s.k, full ? "-full" : "")),
                     program, {.name = "matmul"}, arguments, case_tensors(arguments, 1, full ? "dst" : ""),
                     [&](const std::string&, const std::vector<Tensor>& t) {
                       const auto before = case_tensors(arguments, 1, full ? "dst" : "");
                       std::vector<Approx> parts;
                       for (int i = 0; i < 2; ++i) {
                         reference::MatmulTerms terms;
                         terms.alpha = 0.5, terms.activation = act;
                         if (full) {
                           terms.beta = static_cast<double>(beta), terms.dst = before[2].matrix(i);
                           terms.bias = t[3].matrix().row(0), terms.residual = t[5].matrix(i);
                         }
                         parts.push_back(reference::matmul_bound(t[0].matrix(i), t[1].matrix(i), terms));
                       }
                       return stacked(parts);
                     });
        }
      }
    }
  });
}

template <bool layernorm>
void norm_cases(const char* name) {
  on_each_chip([&](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const auto& [rows, n] : {std::pair{256, 64}, {133, 67}, {1, 1}, {3, 1030}}) {
        for (const int given : {0, 3}) {
          auto blocking = nk::NormBlocking::default_for(l, rows, n);
          blocking.program_rows = 2 * blocking.rows;
          const auto arguments = norm_arguments(dtype, rows, n, (given & 2) != 0);
          write_case(
              case_name(name, l, dtype, nk::text(rows, "x", n, given != 0 ? "-full" : "")),
              norm_program<layernorm>(l, arguments, given, blocking), {.name = name}, arguments,
              case_tensors(arguments, 2), [&](const std::string& tensor, const std::vector<Tensor>& t) {
                if (tensor == "sum")
                  return reference::sum({reference::exact(t[0].rows()), reference::exact(t[4].rows())});
                const Matrix x = given != 0 ? t[5].rows() : t[0].rows();
                Eigen::RowVectorXd weight, bias;
                if (given != 0) weight = t[2].rows().row(0), bias = t[3].rows().row(0);
                if (layernorm) return reference::layernorm_bound(x, weight, bias, 1e-5);
                return reference::rmsnorm_bound(x, weight, 1e-6);
              });
        }
      }
    }
  });
}

TEST_CASE("nki cases: layernorm", "[cases]") { norm_cases<true>("layernorm"); }
TEST_CASE("nki cases: rmsnorm", "[cases]") { norm_cases<false>("rmsnorm"); }

TEST_CASE("nki cases: fused_mlp", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const nk::MlpShape& s :
           {nk::MlpShape{512, 128, 256, 128}, {37, 130, 300, 67}, {600, 5, 7, 3}, {1, 1, 1, 1}}) {
        for (const bool gated : {true, false}) {
          auto blocking = nk::MlpBlocking::default_for(l, s);
          if (!gated) blocking.program_inner = blocking.inner;
          const int splits = blocking.splits(s);
          const auto arguments = mlp_arguments(s, dtype, splits);
          write_case(
              case_name(
                  "fused_mlp", l, dtype,
                  nk::text(s.tokens, "x", s.hidden, "x", s.inner, "x", s.hidden_dst, gated ? "-gated" : "")),
              mlp_program(l, arguments, blocking, gated, true, splits == 1), {.name = "fused_mlp"}, arguments,
              case_tensors(arguments, 3), [&](const std::string&, const std::vector<Tensor>& t) {
                std::vector<Approx> parts;
                for (std::int64_t at = 0; at < s.inner; at += blocking.program_inner) {
                  const auto n = std::min<std::int64_t>(blocking.program_inner, s.inner - at);
                  reference::Mlp w;
                  w.up = t[1].matrix().middleRows(at, n);
                  if (gated) w.gate = t[2].matrix().middleRows(at, n);
                  w.down = t[3].matrix().middleCols(at, n);
                  w.up_bias = t[4].matrix().col(0).segment(at, n).transpose();
                  if (splits == 1) w.down_bias = t[5].matrix().col(0).transpose();
                  parts.push_back(reference::fused_mlp_bound(t[0].matrix(), w, dtype));
                }
                return stacked(parts);
              });
        }
      }
    }
  });
  on_each_chip([](const nk::Limits& l) {
    for (const std::int64_t tokens : {1, 67}) {
      const std::vector<Argument> arguments = {{"partial", DType::f32, {3, tokens, 9}},
                                               {"dst", DType::bf16, {tokens, 9}, true},
                                               {"down_bias", DType::f32, {1, 9}}};
      const Program program = recorded(l, arguments, [](auto& nc, const auto& h) {
        nk::MlpSumArgs<TargetOf<decltype(nc)>> a;
        a.partial = h[0], a.dst = h[1], a.down_bias = h[2];
        mlp_sum_kernel(nc, a);
      });
      write_case(case_name("mlp_sum", l, DType::bf16, nk::text(tokens)), program, {.name = "mlp_sum"},
                 arguments, case_tensors(arguments, 4),
                 [&](const std::string&, const std::vector<Tensor>& t) {
                   const auto part = [&](int i) { return reference::exact(t[0].matrix(i)); };
                   return reference::sum(
                       {reference::repeated(t[2].matrix().row(0), tokens), part(0), part(1), part(2)});
                 });
    }
  });
}

/// The result of each head, or of its lse, under each other.
Approx attention_bound(const AttentionCase& c, const std::vector<Tensor>& t, bool lse, const Tensor* bias,
                       int term_roundings) {
  std::vector<Approx> parts;
  for (std::int64_t i = 0; i < c.shape.batch * c.shape.heads; ++i) {
    const std::int64_t at = i / c.shape.heads * c.shape.kv_heads +
                            reference::kv_head_of(i % c.shape.heads, c.shape.heads, c.shape.kv_heads);
    const reference::AttentionHead head{
        t[0].matrix(i), t[1].matrix(at), t[2].matrix(at), 0.125, bias != nullptr ? bias->matrix(i) : Matrix(),
        c.causal};
    const auto result = reference::attention(head, t[0].dtype(), 16, term_roundings);
    parts.push_back(lse ? result.lse : result.dst);
  }
  return stacked(parts);
}

std::string describe(const AttentionCase& c) {
  const nk::AttentionShape& s = c.shape;
  return nk::text(s.batch, "x", s.heads, "x", s.kv_heads, "x", s.q_len, "x", s.kv_len, "x", s.d, "x", s.dv,
                  c.causal ? "-causal" : "", c.biased ? "-bias" : "");
}

TEST_CASE("nki cases: flash_attention", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const AttentionCase& c : {AttentionCase{{1, 2, 1, 256, 512, 64, 64}, true, false},
                                     {{1, 2, 2, 133, 150, 17, 9}, true, true},
                                     {{1, 4, 2, 1, 67, 8, 8}, false, false},
                                     {{1, 1, 1, 300, 200, 8, 8}, true, false},
                                     {{1, 1, 1, 2, 1100, 8, 5}, false, true}}) {
        const auto arguments = attention_arguments(c.shape, dtype);
        write_case(case_name("flash_attention", l, dtype, describe(c)),
                   attention_program(l, arguments, c, true), {.name = "flash_attention"}, arguments,
                   case_tensors(arguments, 5), [&](const std::string& tensor, const std::vector<Tensor>& t) {
                     return attention_bound(c, t, tensor == "lse", c.biased ? &t[5] : nullptr, 0);
                   });
      }
    }
  });
}

TEST_CASE("nki cases: strip_attention", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const AttentionCase& c : {AttentionCase{{1, 2, 1, 256, 2700, 64, 64}, true, false},
                                     {{1, 1, 1, 133, 150, 17, 9}, true, false},
                                     {{1, 2, 1, 70, 1300, 16, 8}, false, false}}) {
        const auto arguments = attention_arguments(c.shape, dtype);
        write_case(case_name("strip_attention", l, dtype, describe(c)), strip_program(l, dtype, c),
                   {.name = "strip_attention"}, arguments, case_tensors(arguments, 10),
                   [&](const std::string& tensor, const std::vector<Tensor>& t) {
                     return attention_bound(c, t, tensor == "lse", nullptr, 0);
                   });
      }
    }
  });
}

TEST_CASE("nki cases: shared_shift_attention", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    for (const DType dtype : case_dtypes) {
      for (const AttentionCase& c : {AttentionCase{{1, 2, 1, 512, 1024, 64, 64}, true, false},
                                     {{1, 1, 1, 133, 150, 17, 9}, true, false},
                                     {{1, 2, 1, 70, 1300, 16, 8}, false, false}}) {
        const auto arguments = shared_shift_arguments(c.shape, dtype);
        const Program program = shared_shift_program(l, dtype, c);
        write_case(case_name("shared_shift_attention", l, dtype, describe(c)), program,
                   {.name = "shared_shift_attention"}, arguments, case_tensors(arguments, 6),
                   [&](const std::string& tensor, const std::vector<Tensor>& t) {
                     Approx bound = attention_bound(c, t, tensor != "dst", nullptr, 2);
                     if (tensor != "sums") return bound;
                     // sums = e^(lse - shift): what lse is off by, sums is off by relatively.
                     const Matrix sums = t[5].rows();
                     return Approx{sums, sums.cwiseProduct((bound.error.array().exp() - 1).matrix())};
                   });
      }
    }
  });
}

TEST_CASE("nki cases: attention_merge", "[cases]") {
  on_each_chip([](const nk::Limits& l) {
    const Program program = merge_program(l);
    write_case(
        case_name("attention_merge", l, DType::f32, "3x2x130x8"), program, {.name = "attention_merge"},
        merge_arguments(), case_tensors(merge_arguments(), 7),
        [&](const std::string&, const std::vector<Tensor>& t) {
          std::vector<Approx> heads;
          for (int head = 0; head < 2; ++head) {
            const auto lse = [&](int s) { return t[1].matrix(2 * s + head); };
            const Matrix m = lse(0).cwiseMax(lse(1)).cwiseMax(lse(2));
            const auto weight = [&](int s) {  // e^(lse - m)
              const Approx x = reference::sum({reference::exact(lse(s)), reference::exact(-m)});
              const Matrix e = x.value.array().exp();
              const Matrix relative = x.error.array().exp() - 1 + reference::function_error;
              return Approx{e, e.cwiseProduct(relative)};
            };
            const auto term = [&](int s) {
              const Approx w = weight(s);
              return reference::times({w.value.replicate(1, 8), w.error.replicate(1, 8)},
                                      reference::exact(t[0].matrix(2 * s + head)));
            };
            const Approx l_sum = reference::sum({weight(0), weight(1), weight(2)});
            Approx inverse{l_sum.value.cwiseInverse(), l_sum.error};  // l >= 1
            inverse.error.array() += reference::gamma(1);
            heads.push_back(reference::times(reference::sum({term(0), term(1), term(2)}),
                                             {inverse.value.replicate(1, 8), inverse.error.replicate(1, 8)}));
          }
          return stacked(heads);
        });
  });
}

/// One per kernel, on trn2, with a NumPy reference: tests/golden holds their sources.
void write_golden(const std::string& kernel, const Program& program, const std::string& meaning) {
  const CaseFile file("golden-" + kernel, program, {.name = kernel, .reference = meaning});
}

TEST_CASE("nki cases: golden", "[cases]") {
  const nk::Limits& l = nk::trn2;
  const Size m{300, 700, 256};
  const auto blocking = nk::MatmulBlocking::default_for(l, {m.m, m.n, m.k});
  const Program matmul =
      recorded(l, matmul_arguments(DType::bf16, m), matmul_body(blocking, 0.f, true, false, Act::gelu, true));
  const std::string matmul_meaning = nk::nki::matmul_reference(0.5f, Act::gelu, true, true);
  write_golden("matmul", matmul, matmul_meaning);
  const auto norm = norm_arguments(DType::f32, 300, 1100, false);
  const auto rows = nk::NormBlocking::default_for(l, 300, 1100);
  write_golden("layernorm", norm_program<true>(l, norm, 1, rows), nk::nki::layernorm_reference(1e-5f));
  write_golden("rmsnorm", norm_program<false>(l, norm, 1, rows), nk::nki::rmsnorm_reference(1e-6f));
  const nk::MlpShape s{600, 256, 384, 200};
  write_golden(
      "fused_mlp",
      mlp_program(l, mlp_arguments(s, DType::bf16, 1), nk::MlpBlocking::default_for(l, s), true, false, true),
      nk::nki::mlp_reference(Act::silu));
  const AttentionCase c{{1, 4, 2, 300, 700, 64, 64}, true, false},
      shared{{1, 2, 1, 512, 1024, 64, 64}, true, false};
  write_golden("flash_attention", attention_program(l, attention_arguments(c.shape, DType::f32), c, false),
               nk::nki::attention_reference(0.125f, true));
  write_golden("shared_shift_attention", shared_shift_program(l, DType::bf16, shared), "");
  write_golden("strip_attention", strip_program(l, DType::bf16, {{1, 2, 1, 256, 2700, 64, 64}, true, false}),
               "");
  write_golden("attention_merge", merge_program(l), "");
  write_golden("matmul_scheduled", nk::schedule(matmul, l), matmul_meaning);
}

}  // namespace
}  // namespace test
