// program_from_json(text): the Program that a document holds, or an error that says what is wrong with it.
//
// The one header that needs a library: nlohmann/json. json_write.hpp writes such documents, docs/program.md describes
// them.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neuron_kernels/record/json_write.hpp"
#include "neuron_kernels/record/validate.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Numbers with a point are f32, so that each reads as it was written.
using Json = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t,
                                  std::uint64_t, float>;

class JsonReader {
 public:
  JsonReader(const Json& object, const std::string& path) : object_(object), path_(path) {
    if (!object.is_object()) refuse(path, object, "an object");
  }

  template <class T>
  void operator()(const char* key, T&& value) {  // && for Pair and Prefix, which refer
    const auto found = object_.find(key);
    if (found == object_.end()) throw ProgramError(path_, text("has no \"", key, "\", which it needs"));
    keys_.emplace_back(key);
    get(*found, path_.empty() ? key : path_ + "." + key, value);
  }
  template <class T>
  void operator()(const char* key, T& value, const T&) {
    if (object_.contains(key)) {
      (*this)(key, value);
    } else {
      keys_.emplace_back(key);
    }
  }
  /// Errors: ProgramError on a key that was not asked for.
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(keys_.begin(), keys_.end(), key) == keys_.end())
        throw ProgramError(path_,
                           text("has an unknown field ", quoted(key), "; allowed are ", listed(keys_)));
    }
  }

  template <class T>
  static void get(const Json& json, const std::string& path, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto& names = spelled<T>;
      const auto* name = json.template get_ptr<const std::string*>();
      const auto at = name == nullptr ? names.end() : std::find(names.begin(), names.end(), *name);
      if (at == names.end()) refuse(path, json, "one of " + listed(names));
      value = static_cast<T>(at - names.begin());
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) refuse(path, json, "true or false");
      value = json.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      const bool fits =
          json.is_number_integer() &&
          (!json.is_number_unsigned() || json.template get<std::uint64_t>() <= std::uint64_t{1} << 62);
      const std::int64_t n = fits ? json.template get<std::int64_t>() : 0;
      if (!fits || n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max())
        refuse(path, json, "a whole number that fits");
      value = static_cast<T>(n);
    } else {
      object(json, path, value);
    }
  }
  static void get(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) refuse(path, json, "a text");
    value = json.get<std::string>();
  }
  template <class T>
  static void get(const Json& json, const std::string& path, std::vector<T>& list) {
    if (!json.is_array()) refuse(path, json, "a list");
    list.resize(json.size());
    for (std::size_t i = 0; i < list.size(); ++i) get(json[i], text(path, "[", i, "]"), list[i]);
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const Json& given, const std::string& allowed) {
    const std::string is = given.is_object() ? "an object" : given.is_array() ? "a list" : quoted(given);
    throw ProgramError(path, text("is ", is, "; allowed is ", allowed));
  }
  template <class Names>
  static std::string listed(const Names& names) {
    std::string s;
    for (const std::string_view name : names) s += (s.empty() ? "" : ", ") + std::string(name);
    return s;
  }
  /// Any text, as plain ASCII in one line.
  static std::string quoted(const Json& scalar) {
    std::string s = scalar.dump(-1, ' ', true, Json::error_handler_t::replace);
    return s.size() > 60 ? s.substr(0, 60) + "..." : s;
  }

  template <class T>
  static void object(const Json& json, const std::string& path, T& value) {
    JsonReader reader(json, path);
    fields(reader, value, value);
    reader.finish();
  }

  static void get(const Json& json, const std::string& path, float& value) {
    const auto* word = json.get_ptr<const std::string*>();
    if (json.is_number()) {
      value = json.get<float>();
    } else if (word != nullptr && *word == "nan") {
      value = std::numeric_limits<float>::quiet_NaN();
    } else if (word != nullptr && (*word == "inf" || *word == "-inf")) {
      value = (*word == "inf" ? 1.f : -1.f) * std::numeric_limits<float>::infinity();
    } else {
      refuse(path, json, R"(a number, "inf", "-inf" or "nan")");
    }
  }
  static void get(const Json& json, const std::string& path, Scalar& k) {
    json.is_object() ? object(json, path, k.tile) : get(json, path, k.value);
  }
  static void get(const Json& json, const std::string& path, Condition& c) {
    if (!json.is_boolean()) return object(json, path, c);
    c.op = json.get<bool>() ? Compare::always : Compare::never;
  }
  static void get(const Json& json, const std::string& path, SourceLine& where) {
    Pair pair{where.file, where.line};
    get(json, path, pair);
  }
  template <class Array, class Int>
  static void get(const Json& json, const std::string& path, Prefix<Array, Int>& p) {
    if (!json.is_array() || json.size() < 1 || json.size() > p.values.size())
      refuse(path, json, text("a list of 1 to ", p.values.size(), " numbers"));
    p.n = static_cast<Int>(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) get(json[i], text(path, "[", i, "]"), p.values[i]);
  }
  template <class Int>
  static void get(const Json& json, const std::string& path, Pair<Int>& p) {
    if (!json.is_array() || json.size() != 2) refuse(path, json, "a list of 2 numbers");
    get(json[0], path + "[0]", p.first);
    get(json[1], path + "[1]", p.second);
  }

  const Json& object_;
  const std::string& path_;
  std::vector<std::string_view> keys_;  // asked for
};

/// What a document does not repeat: where loops begin and end, the shape of new tiles, which tensors are read.
inline void complete(Program& program) {
  std::vector<int> open;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    const auto known = [](int id, const auto& list) { return id >= 0 && id < static_cast<int>(list.size()); };
    if (op.code == OpCode::loop) {
      open.push_back(op.loop);
      if (!known(op.loop, program.loops)) continue;
      Loop& loop = nth(program.loops, op.loop);
      op.where = loop.where;
      if (loop.first == 0) loop.first = static_cast<int>(i) + 1;
    }
    if (op.code == OpCode::end) {
      if (open.empty()) throw ProgramError(text("ops[", i, "]"), "ends a loop, but none is open");
      op.loop = open.back();
      open.pop_back();
      if (!known(op.loop, program.loops)) continue;
      op.where = nth(program.loops, op.loop).where;
      nth(program.loops, op.loop).last = static_cast<int>(i);
    }
    if (has(op.code, field_makes) && known(op.dst.tile, program.tiles)) {
      op.dst.p = nth(program.tiles, op.dst.tile).p;
      op.dst.f = nth(program.tiles, op.dst.tile).f;
    }
    if (has(op.code, field_hbm) && known(op.hbm.tensor, program.tensors) && op.code != OpCode::staged) {
      Tensor& tensor = nth(program.tensors, op.hbm.tensor);
      const bool stores = op.code == OpCode::store || op.code == OpCode::store_transposed;
      (stores ? tensor.written : tensor.read) = true;
    }
  }
}

inline Json parsed(std::string_view document) {
  constexpr std::size_t most_bytes = 64 << 20;
  constexpr int most_depth = 8;
  if (document.size() > most_bytes)
    throw ProgramError("", text("document of ", document.size(), " bytes; allowed are ", most_bytes));
  try {
    return Json::parse(document, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > most_depth) throw ProgramError("", text("document nested more than ", most_depth, " deep"));
      return true;
    });
  } catch (const Json::exception& error) {  // "[json.exception.parse_error.101] parse error at line 1, ..."
    const std::string_view what = error.what();
    throw ProgramError("", text("document is no JSON: ", what.substr(what.find(' ') + 1)));
  }
}

/// Errors: ProgramError
inline Program program_of(const Json& document) {
  const std::string top;
  JsonReader field(document, top);
  int schema = 0;
  field("schema", schema);
  if (schema != program_schema) {
    throw ProgramError("schema", text("is ", schema, "; this version reads ", program_schema,
                                      ": record the kernel anew, or use the version that wrote it"));
  }
  Program program;
  field("chip", program.chip);
  field("files", program.files, {});
  field("tensors", program.tensors);
  field("tiles", program.tiles);
  field("exprs", program.exprs);
  field("loops", program.loops);
  field("ops", program.ops);
  field.finish();
  complete(program);
  validate(program);
  return program;
}

}  // namespace record

/// The inverse of to_json; source lines and placements included.
/// errors: ProgramError, one sentence that names the field, on anything else
inline Program program_from_json(std::string_view document) {
  return record::program_of(record::parsed(document));
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
