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

/// Hands on what a process of a test reported, or why it was skipped; an issue when it did neither.
package func report(_ child: ExitTest.Result?, sourceLocation: SourceLocation = #_sourceLocation) {
  guard let child else { return }
  let lines = String(decoding: child.standardOutputContent, as: UTF8.self).split(separator: "\n")
  for line in lines where line.hasPrefix("REPORT") || line.hasPrefix("Skipped") { print(line) }
  let isReported = lines.contains { $0.hasPrefix("REPORT") || $0.hasPrefix("Skipped") }
  let faults = lines.filter { $0.hasPrefix("FAULT") }.joined(separator: "\n")
  if !isReported || !faults.isEmpty { Issue.record("The process did not come to its end. \(faults)", sourceLocation: sourceLocation) }
}
