import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes a store as a document: the header, then the objects, by entity and ascending by key.
struct XMLDocumentWriter {
  private let image: StoreImage
  private let metadata: String
  private let model: XMLModel
  private var output: TextOutput
  private let listed: [WrittenLinks]
  private let stated: [WrittenLinks]
  private let format: XMLFormat

  init(image: StoreImage, metadata: String, model: XMLModel, lists: XMLLists, output: TextOutput, format: XMLFormat) {
    self.image = image
    self.metadata = metadata
    self.model = model
    self.output = output
    (listed, stated) = (lists.listed, lists.stated)
    self.format = format
  }

  func write() throws {
    writeHeader()
    for entity in model.entities where !entity.isAbstract { try write(entity) }
    output.put("</database>\n")
    try output.finish(seal: XMLFormat.seal.bytes)
  }

  // MARK: Header

  private func writeHeader() {
    output.put(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">

      <database>
      <databaseInfo>
      <version>
      """)
    output.put(decimal: XMLFormat.version)
    output.put("</version>\n<UUID>")
    output.put(verbatim: image.header.storeUUID)
    output.put("</UUID>\n<nextObjectID>")
    output.put(decimal: (image.header.nextKeys.values.max() ?? 1).rawValue - 1)
    output.put("</nextObjectID>\n<metadata>\n")
    output.put(verbatim: metadata)
    output.put("</metadata>\n</databaseInfo>\n")
  }

  // MARK: Objects

  private func write(_ entity: XMLEntity) throws {
    let fields = XMLFieldTable(entity)
    let suspicious = min(format.options.maximumTextByteCount, format.options.maximumAttributeValueByteCount)
    let mayHaveManyMembers = fields.count > format.options.maximumMemberCount
    let start = NameTable([(before: XMLFormat.objectBegins, name: entity.name, behind: XMLFormat.behindType)])
    try image.generation.forEachRow(of: entity.index) { row in
      let before = output.byteCount
      output.put(start, 0)
      output.put(decimal: row.key.rawValue)
      output.put("\">")
      write(row, fields)
      output.put("</object>\n")
      let byteCount = output.byteCount - before
      if byteCount > suspicious { try checkLimits(row, fields) }
      // Each key of a list takes at least three bytes.
      if mayHaveManyMembers || byteCount > 3 * format.mostListed { try checkMemberCount(row, fields) }
      try output.flushIfFull()
    }
  }

  /// Checks an object that is large enough to contain a value or list beyond the limits for reading.
  private func checkLimits(_ row: RowPointer, _ fields: XMLFieldTable) throws {
    var measure = self
    measure.output = TextOutput { _ in }
    for field in 0..<fields.count {
      switch fields.kind(field) {
      case .attribute(let slot, let type) where row.isPresent(slot):
        measure.put(row, slot, type)
        if measure.output.byteCount > format.options.maximumTextByteCount {
          throw unstorable(row, fields.name(field), format.options.maximumTextByteCount)
        }
      case .targets(let place, _): try checkList(listed[place], row, fields.name(field))
      case .stated(let place): try checkList(stated[place], row, fields.name(field))
      case .attribute, .target: break
      }
      try measure.output.flush()
    }
  }

  private func checkList(_ links: WrittenLinks, _ row: RowPointer, _ name: String) throws {
    var byteCount = 0
    links.withTargets(of: row.key) { targets in
      byteCount = min(targets.count, format.mostListed) * (DigitText.length(UInt64((targets.max() ?? 0).rawValue)) + 2)
    }
    if byteCount > format.options.maximumAttributeValueByteCount {
      throw unstorable(row, name, format.options.maximumAttributeValueByteCount)
    }
  }

  private func checkMemberCount(_ row: RowPointer, _ fields: XMLFieldTable) throws {
    var count = 0
    for field in 0..<fields.count {
      switch fields.kind(field) {
      case .attribute(let slot, _): count += row.isPresent(slot) ? 1 : 0
      case .target: count += 1
      case .targets(let place, _): count += elementCount(listed[place], row)
      case .stated(let place): count += elementCount(stated[place], row)
      }
    }
    if count <= format.options.maximumMemberCount { return }
    throw StoreError(
      .unstorableValue, operation: "write the store", path: format.path,
      reason: "The object with key \(row.key) has \(count) attributes and relationships, and the limit in the options is "
        + "\(format.options.maximumMemberCount). Raise maximumMemberCount.")
  }

  /// The number of elements of a list.
  private func elementCount(_ links: WrittenLinks, _ row: RowPointer) -> Int {
    var count = 0
    links.withTargets(of: row.key) { count = $0.count }
    return max((count + format.mostListed - 1) / format.mostListed, 1)
  }

  private func unstorable(_ row: RowPointer, _ name: String, _ limit: Int) -> StoreError {
    StoreError(
      .unstorableValue, operation: "write the store", path: format.path,
      reason: "\(name) of the object with key \(row.key) needs more than \(limit) bytes, which is the limit in the store's options. "
        + "Raise the limit, or allow external storage for the attribute.")
  }

  @inline(__always) private func write(_ row: RowPointer, _ fields: XMLFieldTable) {
    for field in 0..<fields.count {
      switch fields.kind(field) {
      case .attribute(let slot, let type):
        if row.isPresent(slot) { write(row, slot, type, fields, field) }
      case .target(let slot):
        output.put(fields.names, field)
        if row.isPresent(slot) {
          output.put(" idrefs=\"z")
          output.put(decimal: row.integer(slot))
          output.put("\"")
        }
        output.put("/>")
      case .targets(let place, false): listed[place].withTargets(of: row.key) { write($0, fields, field) }
      case .targets(let place, true):
        listed[place].ordered(of: row.key).map(\.target).withUnsafeBufferPointer { write($0, fields, field) }
      case .stated(let place): stated[place].withTargets(of: row.key) { write($0, fields, field) }
      }
    }
  }

  /// Writes a list, in several elements if it is too long for one.
  private func write(_ targets: UnsafeBufferPointer<ObjectKey>, _ fields: XMLFieldTable, _ field: Int) {
    var start = 0
    repeat {
      let end = min(start + format.mostListed, targets.count)
      output.put(fields.names, field)
      if end > start { output.put(idrefs: UnsafeBufferPointer(rebasing: targets[start..<end])) }
      output.put("/>")
      start = end
    } while start < targets.count
  }

  // MARK: Values

  @inline(__always) private func write(_ row: RowPointer, _ slot: SlotIndex, _ type: AttributeType, _ fields: XMLFieldTable, _ field: Int) {
    if type == .binaryData || type == .transformable, let id = row.externalID(slot) {
      output.put("<attribute name=\"")
      output.put(verbatim: fields.name(field))
      output.put("\" type=\"external\">")
      output.put(verbatim: id.uuidString)
    } else {
      output.put(fields.names, field)
      put(row, slot, type)
    }
    output.put("</attribute>")
  }

  @inline(__always) private func put(_ row: RowPointer, _ slot: SlotIndex, _ type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64: output.put(decimal: row.integer(slot))
    case .boolean: output.put(row.integer(slot) != 0 ? "1" : "0")
    case .date: XMLDate.put(row.real(slot), to: output)
    case .double: put(row.real(slot)) { output.put(shortest: $0) }
    case .float: put(row.real(slot)) { output.put(verbatim: Float($0).description) }
    case .string, .uri, .objectID: output.put(escaped: row.bytes(slot))
    case .decimal: output.put(row.bytes(slot))
    case .uuid: output.put(uuid: row.bytes(slot))
    case .binaryData, .transformable, .composite, .undefined: output.put(base64Lines: row.bytes(slot))
    }
  }

  @inline(__always) private func put(_ value: Double, _ finite: (Double) -> Void) {
    value.isFinite ? finite(value) : output.put(value.isNaN ? "nan" : value > 0 ? "inf" : "-inf")
  }
}
