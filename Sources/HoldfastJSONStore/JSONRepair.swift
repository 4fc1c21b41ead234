import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension JSONFormat: RepairableFormat {
  func recover(_ reader: FileReader, _ given: ManagedObjectModel?) throws -> RecoveredContents {
    let bytes = try reader.rest()
    let memory = RowMemory(options.wholeFile, fileByteCount: Int64(bytes.count))
    if JSONFormat.seal.isRight(bytes) { return try undamaged(bytes, given, path: path, memory: memory) }
    var report = RepairReport()
    let lines = JSONLines(bytes)
    var text = DamagedText(bytes)
    let (header, model) = try beginning(lines, given, &text, &report)
    text.header = try Self.header(header, model)
    var short = header
    short.metadata = [:]
    text.shortHeader = try Self.header(short, model)
    text.separator = Array(",\n".utf8)
    text.end = Array("\n}}\n".utf8)
    text.damagedPlaceCount = lines.damagedPlaceCount
    let parsing = unverified
    func recovery(_ runs: [DamagedText.Run]) -> TextRecovery {
      var text = text
      text.runs = runs
      return TextRecovery(text, model: model, path: path, memory: memory) { try parsing.read($0, into: $1) }
    }
    let runs = try lines.runs(model) { try recovery([$0]).fits($0) }
    text.damagedPlaceCount += lines.damagedNameCount(model) + (lines.hasEnd ? 0 : 1)
    report.unreadableCount += lines.runs.reduce(0) { $0 + $1.objects.count } - runs.reduce(0) { $0 + $1.objects.count }
    var recovery = recovery(runs)
    let count = report.damagedPlaceCount, loader = try recovery.run(&report)
    // Another program may have written the end in another form. Then the entire file was read, and no damaged place was added.
    if !lines.hasEnd && report.damagedPlaceCount > count {
      report.notes.append("The end of the file is missing or damaged. It isn't known how many objects were there.")
    }
    return RecoveredContents(loader, report)
  }

  /// The same format, which reads files whose digest is wrong or missing.
  private var unverified: JSONFormat {
    var options = options
    options.wholeFile.allowsUnverified = true
    return JSONFormat(options: options, path: path)
  }

  // MARK: The beginning

  /// The header and the model.
  private func beginning(
    _ lines: JSONLines, _ given: ManagedObjectModel?, _ text: inout DamagedText, _ report: inout RepairReport
  ) throws -> (StoreFileHeader, ManagedObjectModel) {
    let document = FileReader(lines.header + Array("\n}}\n".utf8), path: path)
    let kept = try (try? readModel(document)).flatMap { $0 } ?? modelInDamagedHeader(lines)
    guard let model = given ?? kept else { throw StoreError.lacksModel(path) }
    document.rewind()
    // A newer format would have a right digest.
    if var header = try? readHeader(document) {
      text.isHeaderDamaged = try header.mendHashes(given: given, kept: kept, path: path)
      if text.isHeaderDamaged { report.damagedPlaceCount += 1 }
      return (header, model)
    }
    text.isHeaderDamaged = true
    report.damagedPlaceCount += 1
    report.notes.append("The beginning of the file is damaged. The metadata is lost.")
    let uuid = lines.storeUUID
    if uuid == nil { report.notes.append("The new store has another UUID.") }
    return (.replacement(of: model, storeUUID: uuid), model)
  }

  /// The model in a header that can't be read, if the hashes there are those of this model. Damage can turn it into another one.
  private func modelInDamagedHeader(_ lines: JSONLines) throws -> ManagedObjectModel? {
    guard let bytes = lines.member("model"), let model = try? ManagedObjectModel.decoded(canonicalJSON: bytes) else { return nil }
    let expected = JSONLines(try Self.header(.replacement(of: model, storeUUID: nil), model))
    let hashes = ["hashes", "layouts"].compactMap { expected.member($0) }
    // The member's name may be damaged.
    return hashes.allSatisfy { lines.header.contains($0) } ? model : nil
  }

  /// The text up to the first entity, without the model, which isn't needed to read objects.
  private static func header(_ header: StoreFileHeader, _ model: ManagedObjectModel) throws -> [UInt8] {
    var text: [UInt8] = []
    let image = try StoreImage(header: header, emptyFor: model), entities = JSONModel(model)
    try JSONDocumentWriter(
      image: image, encodedModel: Array("{}".utf8), model: entities, links: entities.written.map { WrittenLinks(image.generation, $0) },
      output: TextOutput { text += $0 }
    ).write()
    return Array(JSONLines(text).header)
  }
}

/// The lines of a JSON store: each object is one.
struct JSONLines {
  /// Everything up to the first entity.
  private(set) var header: [UInt8] = []
  /// The objects between two lines that are something else. `begin` names the entity if that line begins one.
  private(set) var runs: [DamagedText.Run] = []
  /// The number of lines that are neither.
  private(set) var damagedPlaceCount = 0
  /// Whether there is a line that ends the list of entities.
  private(set) var hasEnd = false
  private let bytes: [UInt8]

  private static let entities = Array("\"entities\":{".utf8)
  private static let objectBegins = Array("{\"$key\":".utf8)
  private static let separator = Array(",\n".utf8)

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var start = 0, isInHeader = true, isInHistory = false, wasDamaged = false
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      let line = bytes[start..<end].last == UInt8(ascii: "\r") ? bytes[start..<end - 1] : bytes[start..<end]
      defer { start = end + 1 }
      if isInHeader {
        isInHeader = !Self.isEntity(line) && !line.starts(with: Self.objectBegins)
        // The line may be damaged, so any object ends the header as well.
        if isInHeader {
          header += bytes[start..<min(end + 1, bytes.count)]
          isInHeader = !line.elementsEqual(Self.entities)
          continue
        }
      }
      isInHistory = isInHistory ? !Self.isEnd(line) : Self.beginsHistory(line)
      if isInHistory || Self.isTransaction(line) { continue }
      if Self.isEntity(line) {
        begin(Array(line.dropLast(line.last == UInt8(ascii: "[") ? 0 : line.last == UInt8(ascii: ",") ? 2 : 1)))
        wasDamaged = false
      } else if line.starts(with: Self.objectBegins) {
        if wasDamaged || runs.isEmpty { begin([]) }
        // Zeros or other damage can have joined the object with the lines behind it, even with the beginning of an entity.
        wasDamaged = line.contains { $0 < UInt8(ascii: " ") }
        let object = start..<(line.last == UInt8(ascii: ",") ? line.endIndex - 1 : line.endIndex)
        runs[runs.count - 1].objects.append(object)
      } else if Self.isEnd(line) {
        if line.first == UInt8(ascii: "}") { hasEnd = true }
      } else {
        damagedPlaceCount += 1
        wasDamaged = true
      }
    }
  }

  private mutating func begin(_ line: [UInt8]) {
    var run = DamagedText.Run()
    (run.begin, run.separator, run.end) = (line, Self.separator, Array("]".utf8))
    runs.append(run)
  }

  /// Whether a line begins an entity: `"Dog":[`.
  private static func isEntity(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.first == UInt8(ascii: "\""), let colon = line.firstIndex(of: UInt8(ascii: ":")), line[colon - 1] == UInt8(ascii: "\"") else {
      return false
    }
    return ["[", "[]", "[],"].contains(String(decoding: line[(colon + 1)...], as: UTF8.self))
  }

  /// Whether a line is a transaction of the history.
  private static func isTransaction(_ line: ArraySlice<UInt8>) -> Bool {
    line.starts(with: Array("{\"author\":".utf8)) || line.starts(with: Array("{\"changes\":".utf8))
  }

  /// Whether a line begins the history, which isn't kept: `"history":[7,`.
  private static func beginsHistory(_ line: ArraySlice<UInt8>) -> Bool {
    let begin = Array("\"history\":[".utf8)
    return line.starts(with: begin)
      && line.dropFirst(begin.count).first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == true
  }

  /// Whether a line ends an entity or the document.
  private static func isEnd(_ line: ArraySlice<UInt8>) -> Bool {
    ["]", "],", "}", "},", ""].contains(String(decoding: line.prefix(3), as: UTF8.self)) || line.starts(with: Array("\"digest\":".utf8))
  }

  /// The bytes of a member of the header that is one line.
  func member(_ name: String) -> [UInt8]? {
    let name = Array("\"\(name)\":".utf8)
    guard let line = header.split(separator: UInt8(ascii: "\n")).first(where: { $0.starts(with: name) }) else { return nil }
    return Array(line.dropFirst(name.count).dropLast(line.last == UInt8(ascii: ",") ? 1 : 0))
  }

  /// The number of lines that name an entity that the model doesn't have.
  func damagedNameCount(_ model: ManagedObjectModel) -> Int {
    runs.count { !$0.begin.isEmpty && !Self.begins(model).contains($0.begin) }
  }

  private static func begins(_ model: ManagedObjectModel) -> [[UInt8]] {
    model.entities.filter { !$0.isAbstract }.map { Array("\"\($0.name)\":[".utf8) }
  }

  /// The store's UUID in a damaged header.
  var storeUUID: String? {
    let name = Array("\"uuid\":\"".utf8), text = header
    guard let place = text.indices.first(where: { text[$0...].starts(with: name) }), place + name.count + 36 < text.count else {
      return nil
    }
    let uuid = String(decoding: text[place + name.count..<place + name.count + 36], as: UTF8.self)
    return UUID(uuidString: uuid)?.uuidString == uuid ? uuid : nil
  }

  /// The runs with their entities.
  ///
  /// A run behind damaged lines continues the entity before, unless only another entity's name can have been in these lines. If several
  /// entities fit, the run isn't used.
  func runs(_ model: ManagedObjectModel, _ fits: (DamagedText.Run) throws -> Bool) throws -> [DamagedText.Run] {
    let found = Set(runs.map(\.begin)), all = Self.begins(model)
    let lost = all.filter { !found.contains($0) }
    var named: [DamagedText.Run] = [], before: [UInt8] = []
    for run in runs {
      // A damaged name is that of a lost entity.
      if all.contains(run.begin) {
        before = run.begin
        named.append(run)
        continue
      }
      let candidates = (before.isEmpty || !run.begin.isEmpty ? [] : [before]) + lost.filter { $0 != before }
      let fitting = try candidates.filter { name in
        var run = run
        run.begin = name
        return try fits(run)
      }
      guard fitting.count == 1 else { continue }
      before = fitting[0]
      var run = run
      run.begin = before
      named.append(run)
    }
    return Self.joined(named)
  }

  /// One run for each entity, because a document has one list of each.
  private static func joined(_ runs: [DamagedText.Run]) -> [DamagedText.Run] {
    var joined: [DamagedText.Run] = []
    for run in runs {
      if let place = joined.firstIndex(where: { $0.begin == run.begin }) {
        joined[place].objects += run.objects
      } else {
        joined.append(run)
      }
    }
    return joined
  }
}
