import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension XMLFormat: RepairableFormat {
  func recover(_ reader: FileReader, _ given: ManagedObjectModel?) throws -> RecoveredContents {
    let bytes = try reader.rest()
    let memory = RowMemory(options.wholeFile, fileByteCount: Int64(bytes.count))
    if XMLFormat.seal.isRight(bytes) { return try undamaged(bytes, given, path: path, memory: memory) }
    let objects = XMLObjects(bytes)
    var report = RepairReport()
    var text = DamagedText(objects.bytes)
    text.end = Array("</database>\n".utf8)
    let model = try beginning(objects, given, &text, &report)
    var run = DamagedText.Run()
    run.objects = objects.ranges
    text.runs = [run]
    text.damagedPlaceCount = objects.damagedPlaceCount
    let parsing = unverified
    var recovery = TextRecovery(text, model: model, path: path, keySpace: keySpace, memory: memory) { try parsing.read($0, into: $1) }
    let count = report.damagedPlaceCount, loader = try recovery.run(&report)
    // Another program may have written the end in another form. Then the entire file was read, and no damaged place was added.
    if !objects.hasEnd && report.damagedPlaceCount > count {
      report.notes.append("The end of the file is missing or damaged. It isn't known how many objects were there.")
    }
    return RecoveredContents(loader, report)
  }

  /// The same format, which reads files whose digest is wrong or missing.
  private var unverified: XMLFormat {
    var options = options
    options.wholeFile.allowsUnverified = true
    return XMLFormat(options: options, path: path, mostListed: mostListed)
  }

  /// Finds the model, and sets the texts before the first object.
  private func beginning(
    _ objects: XMLObjects, _ given: ManagedObjectModel?, _ text: inout DamagedText, _ report: inout RepairReport
  ) throws -> ManagedObjectModel {
    let document = FileReader(objects.header + text.end, path: path)
    let kept = (try? readModel(document)).flatMap { $0 }
    guard let model = given ?? kept else { throw StoreError.lacksModel(path) }
    document.rewind()
    // A newer format would have a right digest.
    if var header = try? storedHeader(document, model), try !header.mendHashes(given: given, kept: kept, path: path) {
      header.metadata = [:]
      (text.header, text.shortHeader) = (objects.header, try self.header(header, model))
      return model
    }
    text.isHeaderDamaged = true
    report.damagedPlaceCount += 1
    report.notes.append("The beginning of the file is damaged. The metadata, the versions of objects and orders are lost.")
    let uuid = objects.storeUUID
    if uuid == nil { report.notes.append("The new store has another UUID.") }
    text.header = try header(.replacement(of: model, storeUUID: uuid), model)
    text.shortHeader = text.header
    return model
  }

  /// The header of a file. That of another program may have no version hashes, and is assumed to match the model.
  private func storedHeader(_ document: FileReader, _ model: ManagedObjectModel) throws -> StoreFileHeader {
    let metadata = try beginning(of: document).metadata
    return metadata.isSealed || metadata.model != nil ? metadata.header : metadata.header(for: model, derivesModel: false)
  }

  /// The text before the first object of a store, without the model, which isn't needed to read objects.
  private func header(_ header: StoreFileHeader, _ model: ManagedObjectModel) throws -> [UInt8] {
    var text: [UInt8] = []
    let image = try StoreImage(header: header, emptyFor: model, keySpace: keySpace), entities = XMLModel(model)
    try XMLDocumentWriter(
      image: image, metadata: try XMLMetadata.list(image, model: [], options).xml(isDocument: false), model: entities,
      lists: XMLLists(image.generation, entities),
      output: TextOutput { text += $0 }, format: self
    ).write()
    let end = text.lastIndex(of: Array("</database>".utf8)) ?? text.count
    return Array(text[..<end])
  }
}

/// The objects in the text of an XML store.
struct XMLObjects {
  let bytes: [UInt8]
  /// Everything before the first object.
  let header: [UInt8]
  private(set) var ranges: [Range<Int>] = []
  /// The number of objects without a beginning or an end, and of other places between objects, or behind the last one.
  private(set) var damagedPlaceCount = 0
  /// Whether there is a tag that ends the document.
  let hasEnd: Bool

  private static let begins = Array("<object ".utf8)
  private static let ends = Array("</object>".utf8)

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    let tags = bytes.tags(Self.begins, Self.ends)
    let found = bytes.lastIndex(of: Array("</database>".utf8)), last = found ?? bytes.count
    hasEnd = found != nil
    header = Array(bytes[..<(tags.first { !$0.isEnd }?.place ?? last)])
    var start: Int?, end = header.count
    for tag in tags where tag.place >= header.count {
      if tag.isEnd {
        guard let begin = start else {
          damagedPlaceCount += 1
          continue
        }
        end = tag.place + Self.ends.count
        ranges.append(begin..<end)
        start = nil
      } else {
        if start != nil || bytes[end..<tag.place].contains(where: { !" \t\r\n".utf8.contains($0) }) { damagedPlaceCount += 1 }
        start = tag.place
        end = tag.place
      }
    }
    if start != nil || end > last || !hasEnd || bytes[end..<last].contains(where: { !" \t\r\n".utf8.contains($0) }) {
      damagedPlaceCount += 1
    }
  }

  /// The store's UUID in a damaged header.
  var storeUUID: String? {
    let name = Array("<UUID>".utf8)
    guard let place = header.lastIndex(of: name), place + name.count + 36 <= header.count else { return nil }
    let uuid = String(decoding: header[place + name.count..<place + name.count + 36], as: UTF8.self)
    return UUID(uuidString: uuid)?.uuidString
  }
}

extension Array<UInt8> {
  /// The places of two texts that begin with `<`, in order, without those in comments.
  fileprivate func tags(_ begins: [UInt8], _ ends: [UInt8]) -> [(place: Int, isEnd: Bool)] {
    var found: [(place: Int, isEnd: Bool)] = []
    var place = startIndex, mayHaveComments = true
    while let next = self[place...].firstIndex(of: UInt8(ascii: "<")) {
      place = next + 1
      if mayHaveComments, self[next...].starts(with: "<!--".utf8) {
        // Without an end, it is damage, and so are all behind it.
        if let end = endOfComment(from: next + 4) { place = end } else { mayHaveComments = false }
      } else if self[next...].starts(with: begins) {
        found.append((next, false))
      } else if self[next...].starts(with: ends) {
        found.append((next, true))
      }
    }
    return found
  }

  /// The place behind the next end of a comment.
  private func endOfComment(from start: Int) -> Int? {
    var place = start
    while let next = self[place...].firstIndex(of: UInt8(ascii: "-")) {
      place = next + 1
      if self[next...].starts(with: "-->".utf8) { return next + 3 }
    }
    return nil
  }

  /// The place of the last occurrence of a text that begins with `<`.
  fileprivate func lastIndex(of text: [UInt8]) -> Int? {
    var end = endIndex
    while let place = self[..<end].lastIndex(of: UInt8(ascii: "<")) {
      if self[place...].starts(with: text) { return place }
      end = place
    }
    return nil
  }
}
