#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Maximum counts for stores. Unlike times, counts are the same on every machine.
public struct Thresholds: Hashable, Codable, Sendable {
  /// The maximum counts of one figure. Missing counts aren't limited.
  public struct Limit: Hashable, Codable, Sendable {
    var store: String
    var input: MeasurementInput
    var size: Int
    var phase: String
    /// Calls of malloc and similar functions.
    var allocations: Int?
    /// Requests to the store.
    var requests: Int?
    /// Statements of the store.
    var statements: Int?
    /// Calls of `fsync` and `fdatasync`.
    var synchronizations: Int?
  }

  /// The limit of each figure.
  public var limits: [Limit]

  /// Creates limits from the current counts.
  ///
  /// The number of allocations depends slightly on the C library and the Swift runtime, so 5 percent and 20 more are allowed. Other
  /// counts must not increase. Packages have no limits, because the input differs between machines.
  public init(_ summaries: [Summary]) {
    limits = summaries.filter { $0.input != .packages }.map {
      Limit(
        store: $0.store, input: $0.input, size: $0.size, phase: $0.phase, allocations: $0.allocations.map { $0 + $0 / 20 + 20 },
        requests: $0.requests, statements: $0.statements, synchronizations: $0.synchronizations)
    }
  }

  /// Reads a file.
  ///
  /// - Throws: ``UnreadableThresholds``.
  public static func read(_ path: String) throws -> Thresholds {
    do {
      return try JSONDecoder().decode(Thresholds.self, from: Data(contentsOf: URL(filePath: path)))
    } catch {
      throw UnreadableThresholds(path: path, cause: error)
    }
  }

  /// Writes a file, replacing it.
  public func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let lines = try limits.map { "    " + String(decoding: try encoder.encode($0), as: UTF8.self) }
    let text = "{\n  \"limits\": [\n" + lines.joined(separator: ",\n") + "\n  ]\n}\n"
    try Data(text.utf8).write(to: URL(filePath: path))
  }

  /// Descriptions of counts above their limit, of missing figures and counts of stores that were measured, and of limits that are all for
  /// something else.
  public func exceeded(by summaries: [Summary]) -> [String] {
    let isForMeasured = limits.contains { limit in
      summaries.contains { $0.store == limit.store && $0.input == limit.input && $0.size == limit.size }
    }
    if !isForMeasured {
      return ["None of the limits is for a store, input and size that was measured. Measure what they are for, or write others."]
    }
    // A platform that can't count these counts none of them.
    let countsAllocations = summaries.contains { $0.allocations != nil }
    let countsSynchronizations = summaries.contains { $0.synchronizations != nil }
    return limits.flatMap { limit -> [String] in
      let measured = summaries.filter { $0.store == limit.store && $0.input == limit.input && $0.size == limit.size }
      // A subject that wasn't measured isn't missing.
      if measured.isEmpty { return [] }
      let name = "\(limit.phase) of \(limit.store) on \(limit.size) \(limit.input.rawValue)"
      guard let summary = measured.first(where: { $0.phase == limit.phase }) else {
        return ["\(name) has a limit, but wasn't measured."]
      }
      return [
        ("allocations", summary.allocations, limit.allocations, countsAllocations),
        ("requests", summary.requests, limit.requests, true), ("statements", summary.statements, limit.statements, true),
        ("fsyncs", summary.synchronizations, limit.synchronizations, countsSynchronizations),
      ].compactMap { what, count, most, isCounted -> String? in
        guard let most else { return nil }
        guard let count else { return isCounted ? "\(name) has a limit of \(what), but they weren't counted." : nil }
        if count <= most { return nil }
        return "\(name) takes \(Units.count(count)) \(what); the limit is \(Units.count(most))."
      }
    }
  }
}

/// A file of thresholds is missing or invalid.
public struct UnreadableThresholds: Error, CustomStringConvertible {
  /// The file.
  public let path: String
  /// The underlying error.
  public let cause: any Error

  /// What failed, and what to do.
  public var description: String { "\(path) contains no thresholds. Write it with --write-thresholds. (\(cause))" }
}
