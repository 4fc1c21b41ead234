import DogService
import Foundation
import Testing

/// The program itself, in a process of its own.
@Suite struct ShutdownTests {
  private let folder = TemporaryFolder()

  /// The built program is beside the test bundle.
  private var program: URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("DogServer")
  }

  @Test func aTerminatedServerAnswersTheRequestsInProgressAndClosesItsStore() async throws {
    let log = folder.path + "/log"
    try Data().write(to: URL(fileURLWithPath: log))
    let process = Process(), output = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    process.executableURL = program
    process.arguments = ["--store", folder.store, "--port", "0"]
    (process.standardOutput, process.standardError) = (output, output)
    try process.run()
    defer { if process.isRunning { process.terminate() } }
    // The server is terminated when each client has added a dog. The clients continue until it no longer answers.
    let clients = 8
    let added = try await DogClient.with(port: try await port(in: log, process)) { client in
      let (begun, continuation) = AsyncStream.makeStream(of: Int.self)
      return await withTaskGroup(of: [String].self) { group in
        for number in 0..<clients {
          group.addTask { await Self.addDogs(client, "client \(number)") { continuation.yield(number) } }
        }
        var waiting = Set(0..<clients)
        for await number in begun {
          waiting.remove(number)
          if waiting.isEmpty { break }
        }
        process.terminate()
        return await group.reduce(into: []) { $0 += $1 }
      }
    }
    process.waitUntilExit()
    let text = try String(contentsOfFile: log, encoding: .utf8)
    #expect(process.terminationReason == .exit && process.terminationStatus == 0, "\(text)")
    // A store that was closed has no log beside it.
    #expect(!FileManager.default.fileExists(atPath: folder.store + "-wal"))
    let kept = try await DogClient.serving(folder) { client in
      var names: [String] = [], offset: Int? = 0
      while let start = offset {
        let page = try await client.get("/dogs?limit=100&offset=\(start)").body(DogPage.self)
        names += page.dogs.map(\.name)
        offset = page.next
      }
      return names
    }
    #expect(kept.sorted() == added.sorted())
  }

  /// Reads the port from the log.
  private func port(in log: String, _ process: Process) async throws -> Int {
    while process.isRunning {
      let text = try String(contentsOfFile: log, encoding: .utf8)
      if let match = text.firstMatch(of: /listening on 127\.0\.0\.1:(\d+)/), let port = Int(match.1) { return port }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw CocoaError(.fileReadUnknown)
  }

  /// Adds dogs one after the other until a request fails. Returns the names of those that were answered with 201.
  private static func addDogs(_ client: DogClient, _ prefix: String, onFirst: () -> Void) async -> [String] {
    var added: [String] = []
    while true {
      let name = "\(prefix) \(added.count)"
      guard let answer = try? await client.add(NewDog(name: name)), answer.status == .created else {
        // A client that never succeeds doesn't hold up the others.
        if added.isEmpty { onFirst() }
        return added
      }
      added.append(name)
      if added.count == 1 { onFirst() }
    }
  }
}
