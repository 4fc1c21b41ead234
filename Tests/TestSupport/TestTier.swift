import Foundation

/// How much of the long tests runs: a share of it, or with `HOLDFAST_TESTS=full` in the environment, as `make test-full` sets it, all.
///
/// A share covers every behaviour, with fewer random programs, kills and damaged files.
package enum TestTier {
  /// Whether all of it runs.
  package static let isFull = ProcessInfo.processInfo.environment["HOLDFAST_TESTS"] == "full"

  /// Whether the tests run under the thread sanitizer, which takes several bytes of memory for each byte that they touch.
  package static let isThreadSanitized = ProcessInfo.processInfo.environment["HOLDFAST_THREAD_SANITIZER"] != nil

  /// The distance between the positions of a file, or the calls of a process, that a test harms; 1 in the full tier.
  package static func step(_ usual: Int) -> Int { isFull ? 1 : usual }

  /// The distance between the calls of a process at which a test kills it, for about this many kills; `full` in the full tier.
  package static func step(calls: Int, kills: Int, full: Int = 1) -> Int { isFull ? full : max(full, calls / kills) }

  /// The number of rounds of a test. The full tier prints it with the file of the test, for the table of `Scripts/test`.
  package static func count(_ usual: Int, full: Int, file: StaticString = #fileID) -> Int {
    guard isFull else { return usual }
    print("ROUNDS=\(full) in \(file)")
    return full
  }
}
