import Foundation
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The memory and files that malicious files make the process use, as reported by the operating system.
@Suite(.serialized, .ownThreads) struct XMLWatchedTests {
  #if os(Linux)
    /// Files that would take much memory to write are refused in little memory as well.
    static let large: [(String, String)] = [
      ("an attribute of 12 MB", XMLHostileFileTests.document("<object type=\"\(String(repeating: "S", count: 12 << 20))\" id=\"z1\"/>")),
      (
        "a text of 20 MB that does not end",
        String(XMLHostileFileTests.document(XMLHostileFileTests.sign(String(repeating: "a", count: 20 << 20))).dropLast(20))
      ),
      ("200,000 deep elements", XMLHostileFileTests.document(String(repeating: "<object type=\"SIGN\" id=\"z1\">", count: 200_000))),
      ("200,000 deep lists", XMLHostileFileTests.metadata("<plist><dict><key>a</key>" + String(repeating: "<array>", count: 200_000))),
      ("a declaration of 5 MB", "<?xml version=\"1.0\" \(String(repeating: " ", count: 5 << 20))?><database/>"),
      (
        "a comment of 12 MB",
        XMLHostileFileTests.document("<!--\(String(repeating: "a", count: 12 << 20))-->" + XMLHostileFileTests.sign("\u{1}"))
      ),
      (
        "100,000 attributes of an element",
        XMLHostileFileTests.document("<object \((0..<100_000).map { "a\($0)=\"\"" }.joined(separator: " ")) type=\"SIGN\" id=\"z1\"/>")
      ),
    ]

    @Test func RX10_aHostileFileTakesLittleMemoryAndOpensNoOtherFile() async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let file = try XMLFile()
        var (watched, most) = (0, 0)
        // The trait that runs tests with both readers has no effect here. A random one of them reads each file, or both in the full tier.
        let files = XMLHostileFileTests.hostile + Self.large
        let all = files.flatMap { file in (TestTier.isFull ? [true, false] : [Bool.random()]).map { (lines: $0, file: file) } }
        for (lines, (title, text)) in all {
          let name = "\(title)\(lines ? "" : " without the scanner")"
          try file.write(text)
          let result = file.folder.path + "-taken"
          defer { unlink(result) }
          let run = try Tracer.run(notes: file.folder.path + ".trace") {
            try ProcessMemory.forgetPeak()
            return ProcessMemory.peak
          } _: { before in
            let refusal = WrittenObjects.$areRead.withValue(lines) { file.refusal(XMLHostileFileTests.signs) }
            try Data("\(refusal == nil ? "opened" : "\((ProcessMemory.peak - before) >> 10)")".utf8).write(to: URL(fileURLWithPath: result))
          }
          guard let run else { return print(Tracer.skipped) }
          let said = try String(contentsOfFile: result, encoding: .utf8)
          guard run.isSuccess, let taken = Int(said) else { complain("\(name): \(said), ended with \(run.status)") }
          demand(taken <= 4 * text.utf8.count / 1024 + 32 * 1024, "\(name): \(taken) KiB for \(text.utf8.count) bytes")
          let others = run.opened.filter {
            ![file.path, file.folder.path, "store.xml", "/proc/self/status"].contains($0) && !$0.hasPrefix(result)
          }
          demand(others.isEmpty, "\(name): \(others)")
          demand(run.opened.contains("store.xml"), "\(name): \(run.opened)")
          demand(!run.lines.contains { $0.hasPrefix("connect(") || $0.hasPrefix("socket(") }, "\(name): \(run.lines)")
          (watched, most) = (watched + 1, max(most, taken))
        }
        print("REPORT RX10: \(watched) files, at most \(most) KiB taken, no other file opened")
      }
      report(child)
    }
  #endif
}
