// What reports say of truncated losses, support vectors and certificates.
#pragma once

#include "base/json.h"
#include "solve/solve.h"

namespace linblock {

inline Json truncated_json(const TruncatedResult& result) {
  return {{"objective", result.objective}, {"outliers", result.outliers}, {"outer_steps", result.outer_steps}};
}

// Of methods that may do without v; and after how many passes of dual newton took over.
inline void add_certificates_made(const Summary& summary, Json& json) {
  const CertificatesMade& made = summary.certificates_made;
  if (made.all > 0) json["certificates"] = {{"made", made.all}, {"without_v", made.without_v}};
  if (summary.changed_after > 0) json["changed_after"] = summary.changed_after;
}

// Of all tasks together.
inline void add_truncated(const Summary& summary, Json& json) {
  if (summary.truncate) {
    json["truncated"] = {{"s", *summary.truncate}};
    json["truncated"].update(truncated_json(summary.truncated_total()));
  }
  if (!summary.support_vectors.empty()) json["support_vectors"] = summary.support_vectors_total();
}

// Of one; where all groups of tasks knew them.
inline void add_truncated(const Summary& summary, size_t task, Json& json) {
  if (summary.truncate) json["truncated"] = truncated_json(summary.truncated[task]);
  if (summary.support_vectors.size() == summary.certificates.size())
    json["support_vectors"] = summary.support_vectors[task];
}

}  // namespace linblock
