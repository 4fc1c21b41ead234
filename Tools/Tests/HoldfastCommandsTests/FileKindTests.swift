import Foundation
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// Only regular files are opened: a pipe would block, and a device may never end.
@Suite struct FileKindTests {
  private func makePipe(_ fixture: Fixture, _ name: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["mkfifo", fixture.path(name)]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
  }

  @Test(arguments: ["pipe", "pipe.json", "pipe.sqlite", "pipe.mom", "pipe.xcdatamodeld", "pipe.momd"])
  func aPipeIsAnErrorAtOnce(_ name: String) throws {
    let fixture = try Fixture()
    try makePipe(fixture, name)
    try FileManager.default.createSymbolicLink(atPath: fixture.path("link"), withDestinationPath: fixture.path(name))
    for path in [name, "link"] {
      let model = try #require(throws: CommandError.self) { try ModelSource(path: fixture.path(path)) }
      let store = try #require(throws: CommandError.self) { try StoreReport(path: fixture.path(path)) }
      #expect(model.reason.contains("pipe") && store.reason.contains("pipe"), "\(model) \(store)")
    }
  }

  /// The bug: the import waited for a program that writes to the pipe.
  @Test func aPipeAmongFilesToImportIsAnErrorAtOnce() throws {
    let fixture = try Fixture(), store = fixture.path("zoo.sqlite"), folder = fixture.path("objects")
    try fixture.writeStore(.sqlite(at: store))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try makePipe(fixture, "objects/Dog.csv")
    let error = try #require(throws: CommandError.self) { try StoreSource.importObjects(into: store, from: folder) }
    #expect(error.path == folder + "/Dog.csv" && error.reason.contains("pipe"), "\(error)")
  }

  @Test func aDeviceIsNoStore() throws {
    let error = try #require(throws: CommandError.self) { try StoreReport(path: "/dev/zero") }
    #expect(error.reason.contains("device"), "\(error)")
  }

  /// The bug: the import reported that another process had created it, and the other commands that it was a pipe, a socket or a device.
  @Test func aLinkWithoutATargetIsReportedAsOne() throws {
    let fixture = try Fixture(), input = fixture.folder.appendingPathComponent("objects.json")
    try Data(#"{"Walk": [{"minutes": 4}]}"#.utf8).write(to: input)
    try FileManager.default.createSymbolicLink(atPath: fixture.path("link.json"), withDestinationPath: "target.json")
    let model = try fixture.writeModel()
    for command in [["store", "import", "link.json", "objects.json", "--model", model], ["store", "info", "link.json"]] {
      let refused = try CommandProcess(command, in: fixture)
      let message = "holdfast: link.json: It is a symbolic link without a target. Give the path of a file.\n"
      #expect(refused.status == 1 && refused.errors == message, "\(refused)")
    }
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: fixture.path("link.json")) == "target.json")
    #expect(!FileManager.default.fileExists(atPath: fixture.path("target.json")))
  }

  @Test func aLinkToAFileIsFollowed() throws {
    let fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    try FileManager.default.createSymbolicLink(atPath: fixture.path("link.sqlite"), withDestinationPath: "zoo.sqlite")
    #expect(try StoreReport(path: fixture.path("link.sqlite")).entities.count == 3)
  }
}
