import Foundation
import HoldfastModelFile
import TestSupport
import Testing

/// The versions of a model on disk, and the current one.
@Suite struct BundleTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func makeVersions(_ names: String..., in bundle: String = "Zoo.xcdatamodeld") throws {
    for name in names { try folder.write("<model name=\"\(name)\"/>", to: "\(bundle)/\(name).xcdatamodel/contents") }
  }

  private func setCurrent(_ list: String) throws {
    try folder.write(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\(list)</plist>", to: "Zoo.xcdatamodeld/.xccurrentversion")
  }

  private func bundle(_ name: String = "Zoo.xcdatamodeld", _ options: ModelFileOptions = ModelFileOptions()) throws -> ModelBundle {
    try ModelBundle(contentsOf: folder.file(name), options: options)
  }

  private func code(_ body: () throws -> Void) -> ModelFileError.Code? {
    do { try body() } catch { return (error as? ModelFileError)?.code }
    return nil
  }

  @Test func theFileSaysWhichVersionIsCurrent() throws {
    try makeVersions("Zoo", "Zoo 2", "Zoo 10")
    try setCurrent("<dict><key>_XCCurrentVersionName</key><string>Zoo 2.xcdatamodel</string><key>other</key><integer>1</integer></dict>")
    let found = try bundle()
    #expect(found.versionNames == ["Zoo", "Zoo 10", "Zoo 2"])
    #expect(found.currentVersionName == "Zoo 2")
    #expect(try found.document().root["name"] == "Zoo 2")
    #expect(try found.document(version: "Zoo 10").root["name"] == "Zoo 10")
    #expect(found.isVersioned)
  }

  @Test(arguments: ["<dict/>", nil] as [String?]) func theFirstVersionIsCurrentWhereNoneIsNamed(_ list: String?) throws {
    try makeVersions("Zoo 2", "Zoo")
    if let list { try setCurrent(list) }
    #expect(try bundle().currentVersionName == "Zoo")
  }

  @Test func anEmptyFileNamesNone() throws {
    try makeVersions("Zoo 2", "Zoo")
    try folder.write("", to: "Zoo.xcdatamodeld/.xccurrentversion")
    #expect(try bundle().currentVersionName == "Zoo")
  }

  @Test func aFolderOfOneVersionIsAModel() throws {
    try folder.write("<model name=\"x\"/>", to: "Ark.xcdatamodel/contents")
    for path in ["Ark.xcdatamodel", "Ark.xcdatamodel/"] {
      let found = try bundle(path)
      #expect(found.versionNames == ["Ark"])
      #expect(try found.document().root["name"] == "x")
      #expect(!found.isVersioned)
    }
  }

  #if os(Linux)
    /// The bug: converting such a model trapped. The file system compares names by their bytes.
    @Test func twoVersionsWithEqualNamesAreRefused() throws {
      try makeVersions("caf\u{E9}", "cafe\u{301}")
      #expect(code { _ = try bundle() } == .contradictory)
      for name in ["caf\u{E9}", "cafe\u{301}"] { try folder.write("x", to: "Zoo.momd/\(name).mom") }
      try folder.write("x", to: "Zoo.momd/VersionInfo.plist")
      #expect(code { _ = try CompiledModelBundle(contentsOf: folder.file("Zoo.momd")) } == .contradictory)
    }
  #endif

  @Test func anOldBinaryVersionIsRefusedAndDoesNotStandInTheWay() throws {
    try makeVersions("Zoo 2")
    try folder.write("bplist00", to: "Zoo.xcdatamodeld/Zoo.xcdatamodel/elements")
    try folder.write("bplist00", to: "Zoo.xcdatamodeld/Zoo.xcdatamodel/layout")
    let found = try bundle()
    #expect(code { _ = try found.document() } == .oldFormat)
    #expect(try found.document(version: "Zoo 2").root["name"] == "Zoo 2")
  }

  @Test(arguments: ["Gone.xcdatamodel", "../Other.xcdatamodel", "Zoo", "Zoo.xcdatamodel/../Zoo.xcdatamodel", "/etc/passwd", ""])
  func aCurrentVersionThatIsNotThereIsAnError(_ name: String) throws {
    try makeVersions("Zoo")
    try makeVersions("Other", in: ".")
    try setCurrent("<dict><key>_XCCurrentVersionName</key><string>\(name)</string></dict>")
    #expect(code { _ = try bundle() } == .unknownVersion)
  }

  @Test(arguments: ["<array/>", "<dict><key>_XCCurrentVersionName</key><integer>1</integer></dict>", "<dict>", "plain"])
  func aCurrentVersionFileOfAnotherKindIsAnError(_ list: String) throws {
    try makeVersions("Zoo")
    try setCurrent(list)
    #expect(code { _ = try bundle() } == .malformed)
  }

  @Test func deepListsInTheCurrentVersionFileAreRefused() throws {
    try makeVersions("Zoo")
    let deep = String(repeating: "<array>", count: 500) + String(repeating: "</array>", count: 500)
    try setCurrent("<dict><key>other</key>\(deep)</dict>")
    #expect(code { _ = try bundle() } == .malformed)
  }

  @Test func aLargeCurrentVersionFileIsNotRead() throws {
    try makeVersions("Zoo")
    try setCurrent(String(repeating: "<array>", count: 10_000))
    #expect(code { _ = try bundle() } == .tooLarge)
  }

  @Test func whatIsNoModelIsNamed() throws {
    try FileManager.default.createDirectory(atPath: folder.file("Empty.xcdatamodeld"), withIntermediateDirectories: true)
    try folder.write("x", to: "File.xcdatamodeld")
    try folder.write("x", to: "Only.xcdatamodeld/Zoo.xcdatamodel")
    try FileManager.default.createDirectory(
      atPath: folder.file("Bare.xcdatamodeld/Zoo.xcdatamodel/contents"), withIntermediateDirectories: true)
    try FileManager.default.createDirectory(atPath: folder.file("Void.xcdatamodeld/Zoo.xcdatamodel"), withIntermediateDirectories: true)
    #expect(code { _ = try bundle("Empty.xcdatamodeld") } == .notAModel)
    #expect(code { _ = try bundle("File.xcdatamodeld") } == .notAModel)
    #expect(code { _ = try bundle("Only.xcdatamodeld") } == .notAModel)
    #expect(code { _ = try bundle("Bare.xcdatamodeld").document() } == .notAModel)
    #expect(code { _ = try bundle("Void.xcdatamodeld").document() } == .notAModel)
    #expect(code { _ = try bundle("Gone.xcdatamodeld") } == .notFound)
    #expect(code { _ = try bundle("Empty.xcdatamodeld/\0x") } != nil)
  }

  @Test func linksInsideAModelAreNotFollowed() throws {
    try folder.write("<model/>", to: "outside/contents")
    try makeVersions("Zoo")
    try folder.link("Zoo.xcdatamodeld/Link.xcdatamodel", to: folder.file("outside"))
    try FileManager.default.createDirectory(atPath: folder.file("Zoo.xcdatamodeld/In.xcdatamodel"), withIntermediateDirectories: true)
    try folder.link("Zoo.xcdatamodeld/In.xcdatamodel/contents", to: folder.file("outside/contents"))
    let found = try bundle()
    #expect(code { _ = try found.document(version: "Link") } == .notAModel)
    #expect(code { _ = try found.document(version: "In") } == .notAModel)
    // The path to the model may contain links.
    try folder.link("Alias.xcdatamodeld", to: folder.file("Zoo.xcdatamodeld"))
    #expect(try bundle("Alias.xcdatamodeld").document(version: "Zoo").root.name == "model")
  }

  @Test func aPipeIsNotWaitedFor() throws {
    try FileManager.default.createDirectory(atPath: folder.file("Zoo.xcdatamodel"), withIntermediateDirectories: true)
    try #require(mkfifo(folder.file("Zoo.xcdatamodel/contents"), 0o600) == 0)
    #expect(code { _ = try bundle("Zoo.xcdatamodel").document() } == .notAModel)
  }

  @Test func sizesAreBounded() throws {
    try makeVersions("A", "B", "C")
    var options = ModelFileOptions()
    options.maximumFileCount = 2
    #expect(code { _ = try bundle("Zoo.xcdatamodeld", options) } == .tooLarge)
    options.maximumFileCount = 3
    options.maximumByteCount = 17
    #expect(code { _ = try bundle("Zoo.xcdatamodeld", options).document() } == nil)
    options.maximumByteCount = 16
    #expect(code { _ = try bundle("Zoo.xcdatamodeld", options).document() } == .tooLarge)
  }

  @Test func aURLAsPathIsExplained() {
    do {
      _ = try ModelBundle(contentsOf: "file:///tmp/Zoo.xcdatamodeld")
      Issue.record("It was read.")
    } catch {
      #expect(error.description.contains("This looks like a URL"))
    }
  }
}
