// Ops that shape a kernel for the chip's engines, on Host: their scalar meaning, by dtype and page, and the
// errors of Host and Recorder.
#include "recording.hpp"

namespace test {
namespace {

using nk::Host;
using nk::TileError;

/// Runs body(nc, hbms of x, y, z) on Host, on each page; x is normal, y and z are written.
template <class Body, class Want>
void on_host(const std::string& op, DType dtype, const Shape& x_shape, const Shape& y_shape, const Body& body,
             const Want& want) {
  for (const nk::host::Page* page : nk::host::all_pages()) {
    Random random(3);
    Tensor x = Tensor::normal(random, dtype, x_shape), y(dtype, y_shape), z(DType::f32, {x_shape[0], 1});
    nk::host::ArenaScope scope;
    Host nc(*page, scope.arena);
    body(nc, Host::Hbm(nk::ConstView(x.view())), Host::Hbm(y.view()), Host::Hbm(z.view()));
    check(y.outside_untouched() && z.outside_untouched(), op, nk::text(page->name, ": wrote outside"));
    want(x.rows(), y.rows(), z);
  }
}

const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {5, 1}, {3, 8}, {13, 33}};

TEST_CASE("transpose: into SBUF and PSUM, whole and as a part") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Shape& s : shapes) {
      for (const bool psum : {false, true}) {
        const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
        on_host(
            "transpose", dtype, s, {s[1], s[0]},
            [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
              auto array =
                  psum ? nc.psum_array("t", 2, f, 2 * p, dtype) : nc.sbuf_array("t", 2, f, 2 * p, dtype);
              const auto dst = array[1].free(p, p);
              nc.transpose(dst, nc.load("x", x));
              auto copied = nc.sbuf("copied", f, p, dtype);
              nc.copy(copied, dst, {.engine = nk::Engine::scalar});
              nc.store(y, copied, {.dge = nk::Dge::none});
            },
            [&](const Matrix& x, const Matrix& y, const Tensor&) { CHECK(y == x.transpose()); });
      }
    }
  }
}

TEST_CASE("scan: a running value along each row, from a number or a column") {
  for (const Shape& s : shapes) {
    for (const bool column : {false, true}) {
      const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
      on_host(
          "scan", DType::f32, s, s,
          [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
            const auto a = nc.load("a", x);
            auto half = nc.sbuf("half", p, f, DType::f32), first = nc.sbuf("first", p, 1, DType::f32);
            nc.tensor_scalar(half, a, Alu::multiply, 0.5f, {.engine = nk::Engine::gpsimd});
            nc.copy(first, a.free(0, 1));
            nc.scan(half, half, Alu::multiply, column ? nk::Operand<Host::Tile>(first) : 2.f, Alu::add, a);
            nc.store(y, half);
          },
          [&](const Matrix& x, const Matrix& y, const Tensor&) {
            for (Eigen::Index i = 0; i < x.rows(); ++i) {
              float last = column ? static_cast<float>(x(i, 0)) : 2.f;
              for (Eigen::Index j = 0; j < x.cols(); ++j) {
                const auto v = static_cast<float>(x(i, j));
                const volatile float product = 0.5f * v * last;  // no contraction
                last = product + v;
                CHECK(static_cast<float>(y(i, j)) == last);
              }
            }
          });
    }
  }
}

TEST_CASE("tensor_scalar_reduce: the result and its maximum, minimum or sum before rounding") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Alu op : {Alu::max, Alu::min, Alu::add}) {
      for (const Shape& s : shapes) {
        on_host(
            "tensor_scalar_reduce", dtype, s, s,
            [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm& z) {
              const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
              auto dst = nc.sbuf("dst", p, f, dtype), column = nc.sbuf("column", p, 1, DType::f32);
              nc.tensor_scalar_reduce(dst, nc.load("x", x), Alu::multiply, 3.f, op, column);
              nc.store(y, dst);
              nc.store(z, column);
            },
            [&](const Matrix& x, const Matrix& y, const Tensor& z) {
              for (Eigen::Index i = 0; i < x.rows(); ++i) {
                const Eigen::RowVectorXd row = 3. * x.row(i);
                const double want = op == Alu::max   ? row.maxCoeff()
                                    : op == Alu::min ? row.minCoeff()
                                                     : row.sum();
                const double slack =
                    op == Alu::add ? 1e-6 * (row.cwiseAbs().sum() + 1) : 1e-6 * std::abs(want);
                CHECK(std::abs(z.at(i) - want) <= slack);
                const double eps = dtype == DType::f32 ? 0x1p-23 : 0x1p-8;
                for (Eigen::Index j = 0; j < x.cols(); ++j)
                  CHECK(std::abs(y(i, j) - row(j)) <= eps * std::abs(row(j)));
              }
            });
      }
    }
  }
}

TEST_CASE("every: each n-th free element, read and written, as a part of a part") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    on_host(
        "every", dtype, {5, 12}, {5, 4},
        [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
          const auto odd = nc.load("x", x).every(2, 1);  // 1 3 5 7 9 11
          auto dst = nc.sbuf("dst", 5, 8, dtype);
          nc.fill(dst, 9.f);
          nc.copy(dst.every(4, 2), odd.free(1, 4).every(2, 1));  // 5 9
          auto taken = nc.sbuf("taken", 5, 4, dtype);
          nc.copy(taken, dst.free(2, 4).every(1, 0));
          nc.store(y, taken);
        },
        [&](const Matrix& x, const Matrix& y, const Tensor&) {
          for (Eigen::Index i = 0; i < 5; ++i) {
            CHECK((y(i, 0) == x(i, 5) && y(i, 1) == 9 && y(i, 2) == 9 && y(i, 3) == 9));
          }
        });
  }
}

TEST_CASE("every: the tensor engine writes and reads such parts") {
  for (const Shape& s : shapes) {
    const int k = static_cast<int>(s[0]), n = static_cast<int>(s[1]);
    on_host(
        "matmul", DType::f32, s, {n, n},
        [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
          const auto a = nc.load("a", x);
          auto wide = nc.psum("wide", n, 3 * n);
          nc.fill(wide, 0.f);
          nc.matmul(wide.every(3, 1), a, a);
          nc.matmul(wide.every(3, 1), a, a, {.accumulate = true});
          auto moving = nc.sbuf("moving", k, 2 * n, DType::f32);
          nc.fill(moving, 0.f);
          nc.copy(moving.every(2, 1), a);
          nc.matmul(wide.every(3, 2), a, moving.every(2, 1));
          auto sum = nc.sbuf("sum", n, n, DType::f32);
          nc.reduce(sum, Alu::add, wide);
          nc.store(y, sum);
        },
        [&](const Matrix& x, const Matrix& y, const Tensor&) {
          const Matrix want = 3. * x.transpose() * x, size = x.cwiseAbs().transpose() * x.cwiseAbs();
          CHECK(((y - want).cwiseAbs().array() <= 3e-7 * static_cast<double>(k + 6) * size.array() + 1e-30)
                    .all());
        });
  }
}

TEST_CASE("activate: blocks that take turns") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int n : {1, 2, 3, 12}) {
      on_host(
          "activate", dtype, {5, 12}, {5, 12},
          [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
            auto dst = nc.sbuf("dst", 5, 12, dtype);
            nc.activate(dst, Act::identity, nc.load("x", x), {.interleave = n});
            nc.store(y, dst);
          },
          [&](const Matrix& x, const Matrix& y, const Tensor&) {
            for (int i = 0; i < 5; ++i) {
              for (int b = 0; b < n; ++b) {
                for (int j = 0; j < 12 / n; ++j) CHECK(y(i, j * n + b) == x(i, b * (12 / n) + j));
              }
            }
          });
    }
  }
}

TEST_CASE("reduce: groups of neighbours in several blocks") {
  for (const Alu op : {Alu::max, Alu::min, Alu::add}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const int blocks : {1, 3}) {
        for (const int group : {1, 2, 5}) {
          const int n = 4, p = 3;
          on_host(
              "reduce", dtype, {p, blocks * n * group}, {p, n},
              [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
                auto dst = nc.sbuf("dst", p, n, dtype);
                nc.reduce(dst, op, nc.load("x", x), {.blocks = blocks});
                nc.store(y, dst);
              },
              [&](const Matrix& x, const Matrix& y, const Tensor&) {
                for (int i = 0; i < p; ++i) {
                  for (int j = 0; j < n; ++j) {
                    double want = x(i, j * group), size = 0;
                    for (int b = 0; b < blocks; ++b) {
                      for (int e = 0; e < group; ++e) {
                        const double v = x(i, (b * n + j) * group + e);
                        size += std::abs(v);
                        if (b == 0 && e == 0) continue;
                        want = op == Alu::add   ? want + v
                               : op == Alu::max ? std::max(want, v)
                                                : std::min(want, v);
                      }
                    }
                    CHECK(std::abs(y(i, j) - want) <= (dtype == DType::f32 ? 0x1p-20 : 0x1p-8) * size);
                  }
                }
              });
        }
      }
    }
  }
}

TEST_CASE("causal_select: keys along either dimension, in place and not") {
  for (const auto keys : {nk::KeyAxis::free, nk::KeyAxis::partition}) {
    for (const int query : {0, 3, 40}) {
      for (const int key : {0, 2, 5, 60}) {
        for (const bool in_place : {false, true}) {
          for (const DType dtype : {DType::f32, DType::bf16}) {
            on_host(
                "causal_select", dtype, {13, 9}, {13, 9},
                [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
                  auto s = nc.sbuf("s", 13, 18, dtype).every(2, 1), dst = nc.sbuf("dst", 13, 9, dtype);
                  nc.copy(s, nc.load("x", x));
                  nc.causal_select(in_place ? s : dst, s, query, key, -5.f, {.keys = keys});
                  nc.store(y, in_place ? s : dst);
                },
                [&](const Matrix& x, const Matrix& y, const Tensor&) {
                  for (int i = 0; i < 13; ++i) {
                    for (int j = 0; j < 9; ++j) {
                      const bool hidden =
                          keys == nk::KeyAxis::free ? key + j > query + i : key + i > query + j;
                      CHECK(y(i, j) == (hidden ? -5. : x(i, j)));
                    }
                  }
                });
          }
        }
      }
    }
  }
}

template <class F>
void rejected(const F& f, const char* message) {
  const auto on = [&](auto& nc) {
    try {
      f(nc);
      FAIL_CHECK("accepted, wanted: " << message);
    } catch (const TileError& error) {
      CHECK_THAT(error.what(), contains_text(message));
    }
  };
  Recorder recorder(nk::trn2);
  on(recorder);
  nk::host::ArenaScope scope;
  Host host(*nk::host::all_pages().front(), scope.arena);
  on(host);
}

TEST_CASE("chip ops: what both targets reject") {
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 4, 3, DType::f32), nc.sbuf("s", 4, 3, DType::f32)); },
           "it must be [3, 4] f32");
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 3, 4, DType::bf16), nc.sbuf("s", 4, 3, DType::f32)); },
           "it must be [3, 4] f32");
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 3, 4, DType::f32), nc.psum("s", 4, 3)); },
           "a transpose reads SBUF");
  rejected([](auto& nc) { (void)nc.sbuf("s", 4, 3, DType::f32).every(2, 1); }, "it must divide 3");
  rejected([](auto& nc) { (void)nc.sbuf("s", 4, 3, DType::f32).every(0, 0); }, "it must divide 3");
  rejected(
      [](auto& nc) {
        auto t = nc.sbuf("t", 4, 3, DType::f32);
        nc.activate(t, Act::exp, t, {.interleave = 2});
      },
      "interleave 2 of t [4, 3] f32 in SBUF; it must divide 3");
  rejected(
      [](auto& nc) {
        nc.reduce(nc.sbuf("d", 4, 2, DType::f32), Alu::add, nc.sbuf("s", 4, 6, DType::f32), {.blocks = 2});
      },
      "a multiple of blocks * 2");
  rejected(
      [](auto& nc) {
        auto t = nc.sbuf("t", 4, 3, DType::f32);
        nc.tensor_scalar_reduce(t, t, Alu::add, 1.f, Alu::subtract, nc.sbuf("c", 4, 1, DType::f32));
      },
      "operator subtract; allowed are add, max and min");
  rejected(
      [](auto& nc) {
        auto t = nc.sbuf("t", 4, 3, DType::f32);
        nc.scan(t, t, Alu::add, nc.sbuf("c", 4, 2, DType::f32), Alu::add, t);
      },
      "it must be [4, 1] f32");
}

}  // namespace
}  // namespace test
