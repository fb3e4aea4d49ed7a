// The files of records, docs/measurements/<machine>/<day>.jsonl: JSON Lines, an object in each
// line.
//
//     {"format":"course records 1","day":"day01_vector_add","device":"NVIDIA H200","commit":"1a2b3c4d5e6f",...}
//     {"problem":"vector_add 1048576","version":"float4","median_ms":0.0046,...}
//
// The first line is the header: what most records have in common. A line after it is one record,
// which may override a key of the header: a peer on the host has another device, and a version
// that was measured later has another commit. scripts/records.py does the same in Python.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace course {

// The device of a record that was measured on the host's CPU.
inline constexpr const char* kHostDevice = "host CPU";

// `records` is the list that to_json() returns. The text is empty for an empty list.
std::string to_json_lines(const nlohmann::ordered_json& records);

// The inverse: each record gets the header's keys that it does not override. Throws
// std::runtime_error, with the number of the line, for anything else.
nlohmann::ordered_json from_json_lines(std::string_view text);

// The text of a file of records with newer records of the host's CPU: those that it had of the same
// problems and device give way, and every other line stays as it is. For an empty file, the text of
// `records`. Throws std::runtime_error as from_json_lines().
std::string with_records_of_host(std::string_view file, const nlohmann::ordered_json& records);

}  // namespace course
