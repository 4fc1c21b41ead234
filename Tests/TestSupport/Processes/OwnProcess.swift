import Foundation
package import Testing

/// Ends the process of a test with a sentence when something does not hold in it. The test finds that it did not report.
///
/// It ends as if all were well, because what a process has said that ended otherwise is not handed to the test.
package func demand(_ isRight: Bool, _ message: @autoclosure () throws -> String) rethrows {
  if !isRight { complain(try message()) }
}

/// Ends the process of a test with a sentence.
package func complain(_ message: String) -> Never {
  print("FAULT \(message)")
  exit(0)
}

/// Runs the body of an exit test that expects a trap.
///
/// An error that the body throws would end the process with a failure, too. The process ends as if all were well then, so the test fails.
package func mustTrap(_ body: () throws -> Void) {
  do { try body() } catch { complain("The process didn't trap, but threw \(error)") }
}

/// Runs a part of a test in a forked child, and returns or throws what it returned or threw.
///
/// A process that forks again and again opens stores only in such children. Its own threads could hold a lock of the library while it forks, and
/// the child would wait for it forever.
package func apart<Result: Codable>(_ body: () throws -> Result) throws -> Result {
  let file = FileManager.default.temporaryDirectory.path + "/holdfast-apart-\(getpid())"
  defer { unlink(file) }
  let status = System.inForkedChild {
    do {
      try JSONEncoder().encode(try body()).write(to: URL(fileURLWithPath: file))
      return 10
    } catch {
      try? Data("\(error)".utf8).write(to: URL(fileURLWithPath: file))
      return 11
    }
  }
  switch status {
  case 10: return try JSONDecoder().decode(Result.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
  case 11: throw FailureApart(description: try String(contentsOfFile: file, encoding: .utf8))
  // It has printed a sentence, if it has come to an end.
  default: complain("A part of the test ended with \(status).")
  }
}

/// Runs a part of a test in a forked child, and throws what it threw.
package func apart(_ body: () throws -> Void) throws {
  _ = try apart {
    try body()
    return true
  }
}

/// An error that was thrown in a forked child.
package struct FailureApart: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}

/// Hands on what a process of a test reported, or why it was skipped; an issue when it did neither.
package func report(_ child: ExitTest.Result?, sourceLocation: SourceLocation = #_sourceLocation) {
  guard let child else { return }
  let lines = String(decoding: child.standardOutputContent, as: UTF8.self).split(separator: "\n")
  for line in lines where line.hasPrefix("REPORT") || line.hasPrefix("Skipped") { print(line) }
  let isReported = lines.contains { $0.hasPrefix("REPORT") || $0.hasPrefix("Skipped") }
  let faults = lines.filter { $0.hasPrefix("FAULT") }.joined(separator: "\n")
  if !isReported || !faults.isEmpty { Issue.record("The process did not come to its end. \(faults)", sourceLocation: sourceLocation) }
}
