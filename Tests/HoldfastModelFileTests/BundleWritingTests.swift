import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import TestSupport
import Testing

/// Writing a model never loses existing files.
@Suite struct BundleWritingTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func document(_ name: String) -> ModelDocument { ModelDocument(root: ModelElement("model", ["name": name])) }

  private func code(_ body: () throws -> Void) -> ModelFileError.Code? {
    do { try body() } catch { return (error as? ModelFileError)?.code }
    return nil
  }

  @Test func aNewModelIsWrittenAsXcodeKeepsIt() throws {
    try ModelBundle.write(["Zoo": document("a"), "Zoo 2": document("b")], currentVersion: "Zoo 2", to: folder.file("Zoo.xcdatamodeld/"))
    #expect(
      folder.namesOfAllLevels == [
        "Zoo.xcdatamodeld", "Zoo.xcdatamodeld/.xccurrentversion", "Zoo.xcdatamodeld/Zoo 2.xcdatamodel",
        "Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents", "Zoo.xcdatamodeld/Zoo.xcdatamodel", "Zoo.xcdatamodeld/Zoo.xcdatamodel/contents",
      ])
    #expect(
      try folder.text("Zoo.xcdatamodeld/.xccurrentversion") == """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \t<key>_XCCurrentVersionName</key>
        \t<string>Zoo 2.xcdatamodel</string>
        </dict>
        </plist>

        """)
    let bundle = try ModelBundle(contentsOf: folder.file("Zoo.xcdatamodeld"))
    #expect(bundle.currentVersionName == "Zoo 2")
    #expect(try bundle.document(version: "Zoo") == document("a"))
    #expect(try bundle.document() == document("b"))
  }

  @Test func namesWithMarkupComeBack() throws {
    let name = "Zoo <&> \"é\" 'ß' ]]>"
    try ModelBundle.write([name: document("a"), "A": document("b")], currentVersion: name, to: folder.file("Zoo.xcdatamodeld"))
    #expect(try ModelBundle(contentsOf: folder.file("Zoo.xcdatamodeld")).currentVersionName == name)
  }

  @Test func aModelOfOneVersionIsWrittenEitherWay() throws {
    try ModelBundle.write(document("a"), to: folder.file("Zoo.xcdatamodeld"))
    try ModelBundle.write(document("b"), to: folder.file("Ark.xcdatamodel"))
    #expect(try ModelBundle(contentsOf: folder.file("Zoo.xcdatamodeld")).versionNames == ["Zoo"])
    #expect(try ModelBundle(contentsOf: folder.file("Ark.xcdatamodel")).document() == document("b"))
    #expect(folder.namesOfAllLevels.filter { $0.hasPrefix("Ark") } == ["Ark.xcdatamodel", "Ark.xcdatamodel/contents"])
  }

  @Test func whatElseIsInTheFolderStays() throws {
    try folder.write("notes", to: "Zoo.xcdatamodeld/notes.txt")
    try folder.write("binary", to: "Zoo.xcdatamodeld/Old.xcdatamodel/elements")
    try folder.write("<model name=\"a\"/>", to: "Zoo.xcdatamodeld/Zoo.xcdatamodel/contents")
    try folder.write("layout", to: "Zoo.xcdatamodeld/Zoo.xcdatamodel/layout")
    try ModelBundle.write(["Zoo": document("b")], currentVersion: "Zoo", to: folder.file("Zoo.xcdatamodeld"))
    #expect(try folder.text("Zoo.xcdatamodeld/notes.txt") == "notes")
    #expect(try folder.text("Zoo.xcdatamodeld/Old.xcdatamodel/elements") == "binary")
    #expect(try folder.text("Zoo.xcdatamodeld/Zoo.xcdatamodel/layout") == "layout")
    let bundle = try ModelBundle(contentsOf: folder.file("Zoo.xcdatamodeld"))
    #expect(bundle.versionNames == ["Old", "Zoo"])
    #expect(bundle.currentVersionName == "Zoo")
    #expect(try bundle.document() == document("b"))
    #expect(!folder.namesOfAllLevels.contains { $0.contains("holdfast") })
  }

  @Test(arguments: ["Zoo & <Ark>", "Zoo&\u{301}", "<\u{338}>\u{338}", "&amp;", "é 🐢"])
  func everyNameCanBeThatOfTheCurrentVersion(_ name: String) throws {
    let path = folder.file("Zoo.xcdatamodeld")
    try ModelBundle.write([name: document("a"), "A": document("b")], currentVersion: name, to: path)
    #expect(try ModelBundle(contentsOf: path).currentVersionName == name)
    #expect(try ModelBundle(contentsOf: path).document() == document("a"))
  }

  @Test func aFileThatNamesTheCurrentVersionStaysAsItIs() throws {
    try ModelBundle.write(["Zoo": document("a"), "Zoo 2": document("b")], currentVersion: "Zoo 2", to: folder.file("Zoo.xcdatamodeld"))
    let list = "<plist><dict><key>mine</key><true/><key>_XCCurrentVersionName</key><string>Zoo 2.xcdatamodel</string></dict></plist>"
    try folder.write(list, to: "Zoo.xcdatamodeld/.xccurrentversion")
    try ModelBundle.write(["Zoo": document("c")], currentVersion: "Zoo 2", to: folder.file("Zoo.xcdatamodeld"))
    #expect(try folder.text("Zoo.xcdatamodeld/.xccurrentversion") == list)
    try ModelBundle.write([:], currentVersion: "Zoo", to: folder.file("Zoo.xcdatamodeld"))
    #expect(try ModelBundle(contentsOf: folder.file("Zoo.xcdatamodeld")).document() == document("c"))
  }

  @Test func aFailureLeavesNothingBehind() throws {
    var bad = document("a")
    bad.root["name"] = "\u{1}"
    #expect(code { try ModelBundle.write(["Zoo": bad], currentVersion: "Zoo", to: folder.file("Zoo.xcdatamodeld")) } == .unwritable)
    #expect(
      code { try ModelBundle.write(["Zoo": document("a")], currentVersion: "Gone", to: folder.file("Zoo.xcdatamodeld")) } == .unknownVersion
    )
    #expect(code { try ModelBundle.write(document("a"), to: folder.file("Zoo")) } == .unwritable)
    #expect(code { try ModelBundle.write([:], currentVersion: "", to: folder.file("Zoo.xcdatamodel")) } == .unwritable)
    #expect(code { try ModelBundle.write(document("a"), to: folder.file("none/Zoo.xcdatamodeld")) } == .notFound)
    #expect(folder.namesOfAllLevels == [])
    try folder.write("x", to: "Zoo.xcdatamodeld")
    #expect(code { try ModelBundle.write(document("a"), to: folder.file("Zoo.xcdatamodeld")) } == .notAModel)
    #expect(try folder.text("Zoo.xcdatamodeld") == "x")
  }

  @Test(arguments: ["", ".", "..", "../Zoo", "a/b", "/a", ".hidden", "a\0b", "a\nb", String(repeating: "x", count: 201)])
  func namesThatLeaveTheFolderAreNotWritten(_ name: String) {
    #expect(code { try ModelBundle.write([name: document("a")], currentVersion: name, to: folder.file("Zoo.xcdatamodeld")) } == .unwritable)
    #expect(folder.namesOfAllLevels == [])
  }

  @Test func linksAreNotWrittenThrough() throws {
    try folder.write("precious", to: "outside/contents")
    try FileManager.default.createDirectory(atPath: folder.file("Zoo.xcdatamodeld"), withIntermediateDirectories: true)
    try folder.link("Zoo.xcdatamodeld/A.xcdatamodel", to: folder.file("outside"))
    try FileManager.default.createDirectory(atPath: folder.file("Zoo.xcdatamodeld/B.xcdatamodel"), withIntermediateDirectories: true)
    try folder.link("Zoo.xcdatamodeld/B.xcdatamodel/contents", to: folder.file("outside/contents"))
    for name in ["A", "B"] {
      #expect(
        code { try ModelBundle.write([name: document("x")], currentVersion: name, to: folder.file("Zoo.xcdatamodeld")) } == .notAModel)
    }
    #expect(try folder.text("outside/contents") == "precious")
  }

  @Test(.ownThreads) func aDiskThatTakesNoMoreLeavesTheOldFile() async throws {
    try folder.write("<model name=\"old\"/>", to: "Zoo.xcdatamodel/contents")
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      ProcessLimits.setFileSize(100)
      let document = ModelDocument(root: ModelElement("model", ["name": String(repeating: "x", count: 1_000)]))
      for name in ["Zoo.xcdatamodel", "New.xcdatamodeld"] {
        do throws(ModelFileError) {
          try ModelBundle.write(document, to: "\(path)/\(name)")
          exit(3)
        } catch {
          if error.code != .inputOutput { exit(4) }
        }
      }
    }
    #expect(try folder.text("Zoo.xcdatamodel/contents") == "<model name=\"old\"/>")
    #expect(folder.namesOfAllLevels == ["Zoo.xcdatamodel", "Zoo.xcdatamodel/contents"])
  }

  @Test func permissionsOfAFileAreKept() throws {
    try folder.write("<model/>", to: "Zoo.xcdatamodel/contents")
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: folder.file("Zoo.xcdatamodel/contents"))
    try ModelBundle.write(document("a"), to: folder.file("Zoo.xcdatamodel"))
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("Zoo.xcdatamodel/contents"))
    #expect(attributes[.posixPermissions] as? Int == 0o640)
  }

  @Test(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)"), arguments: Corpus.bundles)
  func aBundleOfXcodeIsWrittenElsewhereFileForFile(_ path: String) throws {
    let bundle = try ModelBundle(contentsOf: Corpus.path(path))
    guard (try? bundle.document()) != nil else {
      #expect(throws: ModelFileError.self) { try bundle.document() }
      return
    }
    var documents: [String: ModelDocument] = [:]
    for name in bundle.versionNames { documents[name] = try bundle.document(version: name) }
    let copy = folder.file(bundle.isVersioned ? "Copy.xcdatamodeld" : "Copy.xcdatamodel")
    try ModelBundle.write(documents, currentVersion: bundle.currentVersionName, to: copy)
    let read = try ModelBundle(contentsOf: copy)
    #expect(read.currentVersionName == (bundle.isVersioned ? bundle.currentVersionName : "Copy"))
    for (name, document) in documents { #expect(try read.document(version: bundle.isVersioned ? name : "Copy") == document) }
    let list = "\(Corpus.path(path))/.xccurrentversion"
    guard let original = try? Data(contentsOf: URL(fileURLWithPath: list)), original.count > 250 else { return }
    #expect(try folder.text("Copy.xcdatamodeld/.xccurrentversion") == String(decoding: original, as: UTF8.self))
  }
}
