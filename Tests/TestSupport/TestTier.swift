import Foundation

/// How much of the long tests runs: a share of it, or with `HOLDFAST_TESTS=full` in the environment, as `make test-full` sets it, all.
///
/// A share covers each behaviour once, and as many random programs and kills as have found mistakes before.
public enum TestTier {
  /// Whether all of it runs.
  public static let isFull = ProcessInfo.processInfo.environment["HOLDFAST_TESTS"] == "full"

  /// The number of rounds of a test.
  public static func count(_ usual: Int, full: Int) -> Int { isFull ? full : usual }
}
