// Catch2, version 2 (Debian 12) or 3 (Debian 13): tests include this and name only what both have.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

/// Matcher: the text of an exception or a string holds `part`. CHECK_THAT(s, contains_text("kv_len"))
inline auto contains_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}
