// Conversions of the page between f32 and 16-bit rows, for the Vec of the including page.
//
// Included inside a page's namespace and target region, after rows.inl (for_vecs): no includes here.

template <Vec (*load_whole)(const std::uint16_t*), Vec (*load_part)(const std::uint16_t*, int)>
struct WidenBody {
  float* dst;
  const std::uint16_t* src;
  void operator()(std::int64_t j, Whole) const { vec_store(dst + j, load_whole(src + j)); }
  void operator()(std::int64_t j, Part part) const {
    vec_store_part(dst + j, load_part(src + j, part.n), part.n);
  }
};
template <void (*store_whole)(std::uint16_t*, Vec), void (*store_part)(std::uint16_t*, Vec, int)>
struct NarrowBody {
  std::uint16_t* dst;
  const float* src;
  void operator()(std::int64_t j, Whole) const { store_whole(dst + j, vec_load(src + j)); }
  void operator()(std::int64_t j, Part part) const {
    store_part(dst + j, vec_load_part(src + j, part.n), part.n);
  }
};
inline void widen_bf16(float* dst, const std::uint16_t* src, std::int64_t n) {
  for_vecs(n, WidenBody<vec_load_bf16, vec_load_bf16_part>{dst, src});
}
inline void widen_f16(float* dst, const std::uint16_t* src, std::int64_t n) {
  for_vecs(n, WidenBody<vec_load_f16, vec_load_f16_part>{dst, src});
}
inline void narrow_bf16(std::uint16_t* dst, const float* src, std::int64_t n) {
  for_vecs(n, NarrowBody<vec_store_bf16, vec_store_bf16_part>{dst, src});
}
inline void narrow_f16(std::uint16_t* dst, const float* src, std::int64_t n) {
  for_vecs(n, NarrowBody<vec_store_f16, vec_store_f16_part>{dst, src});
}
