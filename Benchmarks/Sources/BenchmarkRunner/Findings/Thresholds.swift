#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Counts that a store must not exceed: they are the same on every machine, as times are not.
public struct Thresholds: Hashable, Codable, Sendable {
  /// The most that one figure may count; what is missing is not limited.
  public struct Limit: Hashable, Codable, Sendable {
    var store: String
    var input: MeasurementInput
    var size: Int
    var phase: String
    /// Calls of malloc and its like.
    var allocations: Int?
    /// Requests to the store.
    var requests: Int?
    /// Statements of the store.
    var statements: Int?
    /// Calls of `fsync` and `fdatasync`.
    var synchronizations: Int?
  }

  /// A limit for each figure.
  public var limits: [Limit]

  /// Takes what was counted as limits. Allocations of the same work differ a little with the C library and the Swift runtime, so
  /// a twentieth and twenty more are allowed; the rest has to be what it is. Packages are another input on each machine.
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

  /// Writes a file over what is there.
  public func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let lines = try limits.map { "    " + String(decoding: try encoder.encode($0), as: UTF8.self) }
    let text = "{\n  \"limits\": [\n" + lines.joined(separator: ",\n") + "\n  ]\n}\n"
    try Data(text.utf8).write(to: URL(filePath: path))
  }

  /// Sentences about counts above their limit, and about limits of stores that were measured whose figure is missing.
  public func exceeded(by summaries: [Summary]) -> [String] {
    limits.flatMap { limit -> [String] in
      let measured = summaries.filter { $0.store == limit.store && $0.input == limit.input && $0.size == limit.size }
      // What was not asked for is not missing.
      if measured.isEmpty { return [] }
      let name = "\(limit.phase) of \(limit.store) on \(limit.size) \(limit.input.rawValue)"
      guard let summary = measured.first(where: { $0.phase == limit.phase }) else {
        return ["There is a limit for \(name), which was not measured."]
      }
      return [
        ("allocations", summary.allocations, limit.allocations), ("requests", summary.requests, limit.requests),
        ("statements", summary.statements, limit.statements), ("fsyncs", summary.synchronizations, limit.synchronizations),
      ].compactMap { what, count, most in
        guard let count, let most, count > most else { return nil }
        return "\(name) takes \(Units.count(count)) \(what), and \(Units.count(most)) are allowed."
      }
    }
  }
}

/// A file of thresholds is missing, or is none.
public struct UnreadableThresholds: Error, CustomStringConvertible {
  /// The file.
  public let path: String
  /// Why it could not be read.
  public let cause: any Error

  /// One sentence: what failed, on what, what to do.
  public var description: String { "\(path) holds no thresholds; write it anew with --write-thresholds. (\(cause))" }
}
