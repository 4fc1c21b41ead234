import DogService
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif
#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The program itself, in a process of its own.
@Suite struct ShutdownTests {
  private let folder = TemporaryFolder()

  /// The built program is beside the test bundle.
  private var program: URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("DogServer")
  }

  @Test func aTerminatedServerAnswersWhatItHasBegunAndClosesItsStore() async throws {
    let log = folder.path + "/log"
    try Data().write(to: URL(fileURLWithPath: log))
    let process = Process(), output = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    process.executableURL = program
    process.arguments = ["--store", folder.store, "--port", "0"]
    (process.standardOutput, process.standardError) = (output, output)
    try process.run()
    let port = try await port(in: log, process)
    // Clients add dogs until the server is gone. Which names were answered with 201?
    let added = await withTaskGroup(of: [String].self) { group in
      for client in 0..<8 {
        group.addTask { await Self.addDogs(port, "client \(client)") }
      }
      group.addTask {
        try? await Task.sleep(for: .milliseconds(300))
        process.terminate()
        return []
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    process.waitUntilExit()
    let text = try String(contentsOfFile: log, encoding: .utf8)
    #expect(process.terminationReason == .exit && process.terminationStatus == 0, "\(text)")
    // A store that was closed has no log beside it.
    #expect(!FileManager.default.fileExists(atPath: folder.store + "-wal"))
    #expect(!added.isEmpty)
    let kept = try await DogClient.serving(folder) { client in
      var names: Set<String> = [], offset: Int? = 0
      while let start = offset {
        let page = try await client.get("/dogs?limit=100&offset=\(start)").body(DogPage.self)
        names.formUnion(page.dogs.map(\.name))
        offset = page.next
      }
      return names
    }
    #expect(kept.isSuperset(of: added))
  }

  /// Reads the port from the log, which says where the server listens.
  private func port(in log: String, _ process: Process) async throws -> Int {
    while process.isRunning {
      let text = try String(contentsOfFile: log, encoding: .utf8)
      if let match = text.firstMatch(of: /listening on 127\.0\.0\.1:(\d+)/), let port = Int(match.1) { return port }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw CocoaError(.fileReadUnknown)
  }

  /// Adds dogs one after the other until a request fails. Returns the names of those that were answered with 201.
  private static func addDogs(_ port: Int, _ prefix: String) async -> [String] {
    var added: [String] = []
    for number in 0... {
      var request = URLRequest(url: URL(string: "http://127.0.0.1:\(port)/dogs")!)
      request.httpMethod = "POST"
      request.httpBody = try? JSONEncoder().encode(NewDog(name: "\(prefix) \(number)"))
      guard let (_, response) = try? await URLSession.shared.data(for: request) else { break }
      guard (response as? HTTPURLResponse)?.statusCode == 201 else { break }
      added.append("\(prefix) \(number)")
    }
    return added
  }
}
