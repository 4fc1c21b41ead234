import Foundation
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Models and stores that an attacker might supply, given to every command that accepts them. The process may use 512 MiB and a minute of
/// processor time. It ends with an answer or a `CommandError`, and changes nothing.
@Suite struct HostileInputTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  /// For a debug build, which is about ten times slower than a release build.
  private static let processorSeconds: UInt = 60

  @Test(arguments: HostileModel.allCases) func everyCommandEndsInTimeWithAModel(_ attack: HostileModel) async throws {
    let path = try attack.make(in: fixture.folder), before = try snapshot()
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [attack = attack as HostileModel, path = path as String, output = fixture.path("output") as String] in
      ProcessLimits.set(memory: 512 << 20, processorSeconds: Self.processorSeconds)
      let outcomes = Self.outcomes(path, output)
      print("REPORT \(attack): \(outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
      let isRefused = Set(outcomes.values) == ["refused"]
      if isRefused != attack.isRefused { print("FAULT \(attack) is \(isRefused ? "refused" : "not refused")") }
    }
    report(child)
    #expect(try snapshot() == before)
  }

  /// The result of each command; "refused" for an error with a sentence.
  private static func outcomes(_ path: String, _ output: String) -> [String: String] {
    var outcomes: [String: String] = [:]
    func run(_ name: String, _ body: () throws -> Int) {
      do { outcomes[name] = "\(try body())" } catch let error as CommandError {
        outcomes[name] = error.reason.count > 10 && !error.description.contains("\u{1B}") ? "refused" : "refused without a reason"
      } catch { outcomes[name] = "untyped error: \(error)" }
    }
    run("info") { TerminalText.escaped(Data(ModelReport(try ModelSource(path: path)).text().utf8)).count }
    run("info --json") { try ModelReport(try ModelSource(path: path)).json().count }
    run("lint") { LintReport(try ModelSource(path: path)).findings.count }
    for format in ModelGraph.Format.allCases { run("graph \(format)") { try ModelGraph.text(path: path, version: nil, format).utf8.count } }
    for ending in ["json", "xcdatamodel"] {
      run("convert \(ending)") {
        try ModelConvert.run(path, to: "\(output).\(ending)")
        try FileManager.default.removeItem(atPath: "\(output).\(ending)")
        return 0
      }
    }
    return outcomes
  }

  @Test(arguments: HostileFile.allCases) func aFileThatIsNoneEndsInTime(_ attack: HostileFile) async throws {
    let victim = fixture.path("victim")
    try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
    let path = try attack.make(in: fixture, victim: victim), before = try snapshot()
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [attack = attack as HostileFile, path = path as String] in
      ProcessLimits.set(memory: 512 << 20, processorSeconds: Self.processorSeconds)
      do {
        let report = try StoreReport(path: path)
        print("REPORT \(attack): \(report.type), \(TerminalText.escaped(Data(report.text().utf8)).count) bytes")
      } catch let error as CommandError {
        print("REPORT \(attack): refused")
        if error.reason.count < 10 { print("FAULT \(error)") }
      } catch { print("FAULT \(error)") }
      do throws(CommandError) { _ = try ModelSource(path: path) } catch {
        if error.reason.count < 10 { print("FAULT \(error)") }
      }
    }
    report(child)
    #expect(try snapshot() == before)
  }

  /// Everything in the folder, with its bytes.
  private func snapshot() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    let names = FileManager.default.enumerator(atPath: fixture.folder.path)
    while let name = names?.nextObject() as? String {
      var status = stat()
      lstat(fixture.path(name), &status)
      let isReadable = status.st_mode & S_IFMT == S_IFREG && status.st_size < 1 << 30
      contents[name] = try isReadable ? Data(contentsOf: fixture.folder.appendingPathComponent(name)) : Data("\(status.st_size)".utf8)
    }
    return contents
  }

  private func report(_ child: ExitTest.Result?) {
    let lines = String(decoding: child?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n")
    let reports = lines.filter { $0.hasPrefix("REPORT") }, faults = lines.filter { $0.hasPrefix("FAULT") }
    for line in reports { print(line) }
    #expect(!reports.isEmpty && faults.isEmpty, "\(faults)")
  }
}

/// A model that takes much time or memory, or that is contradictory.
enum HostileModel: String, CaseIterable, Codable {
  case nestedComposites, nestedCompositesInXML, chain, deepJSON, manyAttributesOfOneTag, entities, parentheses, pipe, endlessFile
  // Valid models that are only large or odd.
  case mostEntities, mostAttributes, mostRelationships, endlessPattern, controlCharacters, longNames

  /// Whether no command accepts it.
  var isRefused: Bool {
    switch self {
    case .mostEntities, .mostAttributes, .mostRelationships, .endlessPattern, .controlCharacters, .longNames: false
    default: true
    }
  }

  /// Returns the path of the model.
  func make(in folder: URL) throws -> String {
    switch self {
    case .nestedComposites: try json(["A": [Self.composite("C0")]], composites: Self.composites(9000), in: folder)
    case .nestedCompositesInXML: try xml(Self.compositesInXML(9000), in: folder)
    case .chain: try json((0..<4000).map { ["name": "E\($0)", "superentity": $0 > 0 ? "E\($0 - 1)" : nil] }, in: folder)
    case .deepJSON: try text("{\"entities\":" + String(repeating: "[", count: 1_000_000), in: folder)
    case .manyAttributesOfOneTag: try xml("<entity name=\"A\" " + (0..<100_000).map { "a\($0)=\"\" " }.joined() + "/>", in: folder)
    case .entities: try xml("<!DOCTYPE m [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><entity name=\"&b;\"/>", in: folder)
    case .parentheses:
      try xml(Self.pattern(String(repeating: "(", count: 50_000) + "a" + String(repeating: ")", count: 50_000)), in: folder)
    case .pipe: try special(in: folder) { mkfifo($0, 0o600) }
    case .endlessFile: try special(in: folder) { symlink("/dev/zero", $0) }
    case .mostEntities: try json((0..<4096).map { ["name": "E\($0)"] }, in: folder)
    case .mostAttributes:
      try json(["A": (0..<4096).map { ["name": "a\($0)", "type": "string", "isOptional": true] }], in: folder)
    case .mostRelationships: try xml(Self.mesh(entities: 40, relationships: 250), in: folder)
    case .endlessPattern: try xml(Self.pattern("(a+)+$", default: String(repeating: "a", count: 60) + "!"), in: folder)
    case .controlCharacters: try json(["A": []], versions: ["\u{1B}]0;mine\u{7}\u{1B}[2J"], in: folder)
    case .longNames: try json(["A" + String(repeating: "b", count: 1_000_000): []], in: folder)
    }
  }

  // MARK: JSON

  private static func composite(_ name: String) -> [String: Any] {
    ["name": "x", "type": "composite", "isOptional": true, "compositeName": name]
  }

  private static func composites(_ count: Int) -> [[String: Any]] {
    (0..<count).map { ["name": "C\($0)", "elements": [composite("C\($0 + 1)")]] }
      + [["name": "C\(count)", "elements": [["name": "x", "type": "string", "isOptional": true]]]]
  }

  private func json(
    _ attributes: [String: [[String: Any]]], composites: [[String: Any]] = [], versions: [String] = [], in folder: URL
  ) throws -> String {
    try json(attributes.map { ["name": $0, "attributes": $1] }, composites: composites, versions: versions, in: folder)
  }

  private func json(_ entities: [[String: Any?]], composites: [[String: Any]] = [], versions: [String] = [], in folder: URL) throws
    -> String
  {
    let usual: [String: Any] = ["attributes": [], "indexes": [], "isAbstract": false, "relationships": [], "uniquenessConstraints": []]
    let whole = entities.map { entity in usual.merging(entity.compactMapValues { $0 }) { $1 } }
    let document: [String: Any] = ["entities": whole, "composites": composites, "versionIdentifiers": versions]
    return try text(String(decoding: JSONSerialization.data(withJSONObject: document), as: UTF8.self), in: folder)
  }

  private func text(_ text: String, in folder: URL) throws -> String {
    let path = folder.appendingPathComponent("model.json")
    try Data(text.utf8).write(to: path)
    return path.path
  }

  // MARK: XML

  private static func compositesInXML(_ count: Int) -> String {
    "<entity name=\"A\"><attribute name=\"x\" optional=\"YES\" attributeType=\"Composite\" composite=\"C0\"/></entity>"
      + (0..<count).map {
        "<composite name=\"C\($0)\"><attribute name=\"x\" optional=\"YES\" attributeType=\"Composite\" composite=\"C\($0 + 1)\"/></composite>"
      }.joined() + "<composite name=\"C\(count)\"><attribute name=\"x\" optional=\"YES\" attributeType=\"String\"/></composite>"
  }

  private static func pattern(_ pattern: String, default value: String = "") -> String {
    "<entity name=\"A\"><attribute name=\"x\" optional=\"YES\" attributeType=\"String\" defaultValueString=\"\(value)\" "
      + "regularExpressionString=\"\(pattern)\"/></entity>"
  }

  private static func mesh(entities: Int, relationships: Int) -> String {
    (0..<entities).map { entity in
      "<entity name=\"E\(entity)\">"
        + (0..<relationships).map {
          "<relationship name=\"r\($0)\" optional=\"YES\" maxCount=\"1\" deletionRule=\"Nullify\" destinationEntity=\"E\($0 % entities)\"/>"
        }.joined() + "</entity>"
    }.joined()
  }

  private func xml(_ body: String, in folder: URL) throws -> String {
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    let opening = "<model type=\"com.apple.IDECoreDataModeler.DataModel\" documentVersion=\"1.0\">"
    let text = body.hasPrefix("<!DOCTYPE") ? "\(declaration)\(body)" : "\(declaration)\(opening)\(body)</model>"
    return try bundle(in: folder) { try Data(text.utf8).write(to: URL(fileURLWithPath: $0)) }
  }

  private func special(in folder: URL, _ make: (String) -> Int32) throws -> String {
    try bundle(in: folder) { try #require(make($0) == 0) }
  }

  /// A model with its contents at a path.
  private func bundle(in folder: URL, _ makeContents: (String) throws -> Void) throws -> String {
    let bundle = folder.appendingPathComponent("model.xcdatamodel")
    try FileManager.default.createDirectory(at: bundle, withIntermediateDirectories: true)
    try makeContents(bundle.appendingPathComponent("contents").path)
    return bundle.path
  }
}

/// A file at a path or beside it, instead of a store.
enum HostileFile: String, CaseIterable, Codable {
  case pipe, device, endlessFile, deepJSON, longTag, sparse
  case pipeAsJournal, pipeAsLog, journalOfOtherFiles

  /// Returns the path that the command is given.
  func make(in fixture: Fixture, victim: String) throws -> String {
    let path = fixture.path("store")
    switch self {
    case .pipe: try #require(mkfifo(path, 0o600) == 0)
    case .device: return "/dev/zero"
    case .endlessFile: try #require(symlink("/dev/zero", path) == 0)
    case .deepJSON: try write("{\"format\":\"holdfast-json\",\"version\":1,\"x\":" + String(repeating: "[", count: 5_000_000), path)
    case .longTag: try write("<?xml version=\"1.0\"?><database " + (0..<100_000).map { "a\($0)=\"\" " }.joined() + "/>", path)
    case .sparse:
      try write("SQLite format 3\0", path)
      try #require(truncate(path, 1 << 40) == 0)
    case .pipeAsJournal, .pipeAsLog:
      try fixture.writeStore(.sqlite(at: path))
      try #require(mkfifo(path + (self == .pipeAsLog ? "-wal" : "-journal"), 0o600) == 0)
    case .journalOfOtherFiles:
      try fixture.writeStore(.sqlite(at: path))
      try Data(journal(naming: victim)).write(to: URL(fileURLWithPath: path + "-journal"))
    }
    return path
  }

  private func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

  /// A journal that looks hot, has no pages and names a super-journal (SQLite, *Database File Format*, 3).
  private func journal(naming victim: String) -> [UInt8] {
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    func number(_ value: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(value).bigEndian) { Array($0) } }
    let name = Array(victim.utf8)
    let header = magic + number(0) + number(0) + number(8) + number(512) + number(4096)
    return header + [UInt8](repeating: 0, count: 512 - header.count) + number(0x4000_0000 / 4096 + 1) + name + number(name.count)
      + number(name.reduce(0) { $0 + Int($1) }) + magic
  }
}
