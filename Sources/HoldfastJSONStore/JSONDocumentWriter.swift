import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes a store as a document: the header, then the objects, one per line and ascending by key, so that files can be compared
/// line by line.
struct JSONDocumentWriter {
  private let image: StoreImage
  private let encodedModel: [UInt8]
  private let model: JSONModel
  private let output: TextOutput
  /// The links of each relationship in `model.written`.
  private let links: [WrittenLinks]

  init(image: StoreImage, encodedModel: [UInt8], model: JSONModel, links: [WrittenLinks], output: TextOutput) {
    self.image = image
    self.encodedModel = encodedModel
    self.model = model
    self.output = output
    self.links = links
  }

  func write() throws {
    writeHeader()
    output.put(",\n\"entities\":{")
    var isFirst = true
    for entity in model.entities where !entity.isAbstract {
      output.put(isFirst ? "\n" : ",\n")
      try write(entity)
      isFirst = false
    }
    output.put("\n}")
    if let history = image.history { try write(history) }
    try output.finish(seal: JSONFormat.seal.bytes)
  }

  // MARK: Header

  private func writeHeader() {
    let header = image.header
    output.put("{\"format\":")
    put(text: JSONFormat.name)
    output.put(",\"version\":")
    output.put(JSONFormat.version(of: image.model))
    output.put(",\"uuid\":")
    put(text: header.storeUUID)
    output.put(",\"generation\":")
    output.put(header.generation)
    if !header.lineage.isEmpty {
      output.put(",\"lineage\":")
      header.lineage.withUnsafeBytes { output.put(quotedBase64: $0) }
    }
    output.put(",\n\"hashes\":")
    putObject(header.versionHashes) { hash in hash.withUnsafeBytes { output.put(quotedBase64: $0) } }
    if let layouts = header.layoutHashes, !layouts.isEmpty {
      output.put(",\n\"layouts\":")
      putObject(layouts) { hash in hash.withUnsafeBytes { output.put(quotedBase64: $0) } }
    }
    output.put(",\n\"nextKeys\":")
    putObject(header.nextKeys) { output.put($0.rawValue) }
    output.put(",\n\"metadata\":")
    putObject(header.metadata) { put($0) }
    output.put(",\n\"model\":")
    output.put(encodedModel)
  }

  private func put(text: String) {
    var text = text
    text.withUTF8 { output.put(text: UnsafeRawBufferPointer($0)) }
  }

  /// Writes members sorted by the bytes of their names, so that equal contents produce equal files.
  private func putObject<Value>(_ members: [String: Value], _ put: (Value) -> Void) {
    output.put("{")
    for (place, member) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }).enumerated() {
      if place > 0 { output.put(",") }
      self.put(text: member.key)
      output.put(":")
      put(member.value)
    }
    output.put("}")
  }

  /// The digits of a decimal, without zeros at the end of a fraction. With these, there can be more than the 38 that are read.
  private static func digits(_ value: Decimal) -> String {
    var digits = value.description
    guard digits.utf8.contains(UInt8(ascii: ".")) else { return digits }
    while digits.last == "0" { digits.removeLast() }
    if digits.last == "." { digits.removeLast() }
    return digits
  }

  /// Writes a metadata value as a pair of its type and the value.
  private func put(_ value: StoreValue) {
    output.put("[")
    put(text: JSONMetadata.type(of: value))
    output.put(",")
    switch value {
    case .null: output.put("null")
    case .bool(let value): output.put(value ? "true" : "false")
    case .int16(let value): output.put(Int64(value))
    case .int32(let value): output.put(Int64(value))
    case .int64(let value): output.put(value)
    case .float(let value): output.put(value)
    case .double(let value), .date(let value): output.put(value)
    case .decimal(let value): put(text: JSONDocumentWriter.digits(value))
    case .string(let value), .uri(let value): put(text: value)
    case .uuid(let value): withUnsafeBytes(of: value.uuid) { output.put(quotedUUID: $0) }
    case .data(let value): value.withUnsafeBytes { output.put(quotedBase64: $0) }
    // The metadata check has already refused these.
    case .externalData: output.put("null")
    case .objectID(let value): put(text: value.uriRepresentation)
    }
    output.put("]")
  }

  // MARK: History

  /// Writes the number of the last transaction, then the transactions, one per line.
  private func write(_ history: HistoryLog) throws {
    output.put(",\n\"history\":[")
    output.put(decimal: history.last)
    for line in history.lines.split(separator: UInt8(ascii: "\n")) {
      output.put(",\n")
      line.withUnsafeBytes { output.put($0) }
      try output.flushIfFull()
    }
    output.put("\n]")
  }

  // MARK: Objects

  private func write(_ entity: JSONEntity) throws {
    put(text: entity.name)
    output.put(":[")
    let fields = JSONFieldTable(entity)
    var hasRows = false
    try image.generation.forEachRow(of: entity.index) { row in
      output.put(hasRows ? ",\n{\"$key\":" : "\n{\"$key\":")
      hasRows = true
      write(row, fields)
      output.put("}")
      try output.flushIfFull()
    }
    output.put(hasRows ? "\n]" : "]")
  }

  @inline(__always) private func write(_ row: RowPointer, _ fields: JSONFieldTable) {
    output.put(row.key.rawValue)
    var orders: [(field: Int, keys: [Int64])] = []
    for field in 0..<fields.count {
      switch fields.kind(field) {
      case .key: break
      case .version:
        if row.version == 1 { continue }
        output.put(fields.names, field)
        output.put(row.version.rawValue)
      case .attribute(let slot, let type):
        guard row.isPresent(slot) else { continue }
        output.put(fields.names, field)
        put(row, slot, type)
      case .target(let slot):
        guard row.isPresent(slot) else { continue }
        output.put(fields.names, field)
        output.put(row.integer(slot))
      case .targets(let place, false):
        links[place].withTargets(of: row.key) { targets in
          if targets.isEmpty { return }
          output.put(fields.names, field)
          output.put(list: targets)
        }
      case .targets(let place, true):
        if let keys = writeOrdered(row.key, fields, field, links[place]) { orders.append((field, keys)) }
      case .orders:
        if orders.isEmpty { continue }
        output.put(fields.names, field)
        write(orders, fields)
      }
    }
  }

  @inline(__always) private func put(_ row: RowPointer, _ slot: SlotIndex, _ type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64: output.put(row.integer(slot))
    case .boolean: output.put(row.integer(slot) != 0 ? "true" : "false")
    case .double, .date: output.put(row.real(slot))
    case .float: output.put(Float(row.real(slot)))
    case .string, .uri, .objectID: output.put(text: row.bytes(slot))
    case .decimal: put(decimal: row.bytes(slot))
    case .binaryData, .transformable:
      if let id = row.externalID(slot) {
        put(text: JSONText.fileName(id))
      } else {
        output.put(quotedBase64: row.bytes(slot))
      }
    case .composite, .undefined: output.put(quotedBase64: row.bytes(slot))
    case .uuid: output.put(quotedUUID: row.bytes(slot))
    }
  }

  /// Writes a decimal as a number if every reader reads it exactly, otherwise as a string.
  private func put(decimal text: UnsafeRawBufferPointer) {
    let digits = text.first == UInt8(ascii: "-") ? text.dropFirst() : text[...]
    let isPlain = digits.count <= 15 && digits.allSatisfy { $0 &- 0x30 < 10 }
    isPlain ? output.put(text) : output.put(text: text)
  }

  /// - Returns: The order keys, or nil if they are the default ones.
  private func writeOrdered(_ key: ObjectKey, _ fields: JSONFieldTable, _ field: Int, _ links: WrittenLinks) -> [Int64]? {
    let targets = links.ordered(of: key)
    if targets.isEmpty { return nil }
    output.put(fields.names, field)
    targets.map(\.target).withUnsafeBufferPointer { output.put(list: $0) }
    let isUsual = targets.indices.allSatisfy { targets[$0].order == UsualOrder.key($0) }
    return isUsual ? nil : targets.map(\.order)
  }

  private func write(_ orders: [(field: Int, keys: [Int64])], _ fields: JSONFieldTable) {
    for (place, order) in orders.enumerated() {
      output.put(place == 0 ? "{\"" : ",\"")
      output.put(verbatim: fields.name(order.field))
      output.put("\":")
      order.keys.withUnsafeBufferPointer { output.put(list: $0) }
    }
    output.put("}")
  }
}
