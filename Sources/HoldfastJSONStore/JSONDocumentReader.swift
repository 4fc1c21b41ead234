import CHoldfastYajl
import HoldfastAtomicStore
import HoldfastStore

/// Stops the parser once the header is complete.
private struct Enough: Error {}

/// Handles the parser's events: checks that each one is allowed by the format, and passes rows on.
final class JSONDocumentReader {
  let errors: JSONErrors
  /// The error that stopped the parser.
  @exclusivity(unchecked) var failure: (any Error)?
  /// The header of the document, as far as it was read.
  private(set) var header = StoreFileHeader(storeUUID: "", generation: 0, versionHashes: [:])
  /// Whether everything needed was read, although the document continues.
  @exclusivity(unchecked) private(set) var isSatisfied = false
  /// Whether the document has ended.
  var isComplete: Bool { place == .end }

  /// Called when a row begins and ends. The parser can send names and values in between directly to ``withRows(_:)``.
  var rowsBeginOrEnd: ((Bool) -> Void)?
  /// Whether an event arrived since the last call of ``takeHeard()``.
  @exclusivity(unchecked) var hasHeard = false

  /// The document's `model` member; nil if objects are read as well.
  let model: JSONEcho?
  /// The transactions of the document's `history` member, and the number of the last one.
  private lazy var transactions = JSONEcho()
  @exclusivity(unchecked) private var lastTransaction: Int64?
  /// What receives the events in the current member; nil if nothing does.
  private var echo: JSONEcho? { place == .history ? transactions : model }

  private let loader: TableLoader?
  private let options: JSONStoreOptions
  private let rows: JSONRowReader?
  /// ``rows`` without reference counting, for calls made once per value. This object keeps it alive.
  private let uncountedRows: Unmanaged<JSONRowReader>?
  @exclusivity(unchecked) private var place = Place.start
  @exclusivity(unchecked) private var depth = 0
  /// The index in `members` of the current or last member.
  @exclusivity(unchecked) private var member = -1
  /// Whether the document was recognized as this format.
  @exclusivity(unchecked) private var isRecognised = false
  /// The last name in a JSON object that isn't a row.
  @exclusivity(unchecked) private var name = ""
  /// The names so far in each open JSON object that isn't a row.
  @exclusivity(unchecked) private var names: [Set<String>] = []
  /// The type name of a metadata value, once read, and whether its value was read.
  @exclusivity(unchecked) private var metadataType: String?
  @exclusivity(unchecked) private var hasMetadataValue = false

  private enum Place {
    case start
    /// In the document's object, or in an object that is the value of one of its members.
    case members, hashes, layouts, nextKeys, metadata, metadataValue, model, entities
    /// In the list of an entity's objects, in an object, in a list of keys in it, or in its order keys.
    case rows, row, targets, orders, orderKeys
    /// In the history's list, or in a transaction.
    case history
    case end
  }

  /// The members of a document, in their order. `lineage`, `layouts`, `history` and `digest` are optional. On disk: do not change.
  private static let members = [
    "format", "version", "uuid", "generation", "lineage", "hashes", "layouts", "nextKeys", "metadata", "model", "entities", "history",
    "digest",
  ]
  private static let optionalMembers: Set<String> = ["lineage", "layouts", "history"]
  private static let entitiesMember = 10
  private static let historyMember = 11

  /// - Parameter loader: Receives the rows; nil to read only the header.
  init(loader: TableLoader?, errors: JSONErrors, options: JSONStoreOptions) {
    self.loader = loader
    self.errors = errors
    self.options = options
    model = loader == nil ? JSONEcho() : nil
    rows = loader.map { JSONRowReader($0, errors) }
    uncountedRows = rows.map { Unmanaged.passUnretained($0) }
  }

  /// Whether the next value is an object of an entity.
  var isBetweenRows: Bool { place == .rows && rows != nil }

  /// Records that the digest is wrong or missing.
  func noteUnverified() { loader?.isVerified = false }

  /// Sets the share of the file that was parsed, from 0 to 1.
  func proceeded(to progress: Double) { rows?.progress = progress }

  func takeHeard() -> Bool {
    defer { hasHeard = false }
    return hasHeard
  }

  func damaged(_ what: String, at offset: Int) -> StoreError {
    refusal(errors.damaged(what, "Location: before byte \(offset)."))
  }

  private func damaged(_ what: String) -> StoreError {
    if !isRecognised { return errors.notAStore() }
    if place == .row || place == .targets || place == .orders || place == .orderKeys, let rows { return rows.damaged(what) }
    return errors.damaged(what, "Location: member \(JSONDocumentReader.members[member]).")
  }

  /// Returns the error for a refused file. Until the format is recognized, that is always `notAStore`.
  private func refusal(_ error: @autoclosure () -> StoreError) -> StoreError { isRecognised ? error() : errors.notAStore() }

  private func unexpected(_ what: String) -> StoreError { damaged("Unexpected \(what).") }

  // MARK: Structure

  func beginObject() throws {
    try deepen()
    switch place {
    case .start: enter(.members)
    case .members where depth == 2:
      switch JSONDocumentReader.members[max(member, 0)] {
      case "hashes": enter(.hashes)
      case "layouts": enter(.layouts)
      case "nextKeys": enter(.nextKeys)
      case "metadata": enter(.metadata)
      case "model":
        enter(.model)
        model?.begin("{")
      case "entities": enter(.entities)
      default: throw unexpected("object")
      }
    case .model, .history:
      names.append([])
      echo?.begin("{")
    case .rows:
      place = .row
      rows?.beginRow()
      rowsBeginOrEnd?(true)
    case .row:
      guard rows?.wantsOrders == true else { throw unexpected("object") }
      place = .orders
      rowsBeginOrEnd?(false)
    default: throw unexpected("object")
    }
  }

  private func enter(_ next: Place) {
    place = next
    names.append([])
  }

  private func deepen() throws {
    depth += 1
    // Kept values are nested 10 levels deep.
    let limit = place == .history ? max(options.maximumNesting, 16) : options.maximumNesting
    if depth > limit {
      throw refusal(errors.limit("Arrays and objects are nested more than \(limit) levels deep.", ""))
    }
  }

  func endObject() throws {
    depth -= 1
    switch place {
    case .row:
      try rows?.endRow()
      place = .rows
      rowsBeginOrEnd?(false)
    case .orders:
      place = .row
      rowsBeginOrEnd?(true)
    case .model, .history:
      names.removeLast()
      echo?.end("}")
      if depth == 1 { place = .members }
      if depth == 2 && place == .history { transactions.endLine() }
    case .members:
      guard member >= JSONDocumentReader.entitiesMember else { throw damaged("The document has no member \"entities\".") }
      place = .end
    case .entities:
      try rows?.finish()
      names.removeLast()
      place = .members
    default:
      names.removeLast()
      place = .members
    }
  }

  func beginArray() throws {
    try deepen()
    switch place {
    case .entities where depth == 3: place = .rows
    case .row:
      guard let rows, rows.beginTargets() else { throw unexpected("array") }
      place = .targets
    case .orders:
      try rows?.beginOrderKeys()
      place = .orderKeys
    case .metadata:
      (metadataType, hasMetadataValue) = (nil, false)
      place = .metadataValue
    case .members where depth == 2 && member == JSONDocumentReader.historyMember: place = .history
    case .model, .history:
      if place == .history && depth == 3 { throw unexpected("array") }
      echo?.begin("[")
    default: throw unexpected("array")
    }
  }

  func endArray() throws {
    depth -= 1
    switch place {
    case .rows:
      try rows?.endEntity()
      place = .entities
    case .targets:
      rows?.endTargets()
      place = .row
    case .orderKeys:
      try rows?.endOrderKeys()
      place = .orders
    case .history where depth == 1: try takeHistory()
    case .model, .history: echo?.end("]")
    case .metadataValue:
      guard hasMetadataValue else { throw damaged("A metadata value isn't a pair of a type and a value.") }
      place = .metadata
    default: break
    }
  }

  func name(_ text: UnsafeRawBufferPointer) throws {
    // Names in the history are those of the format and of properties, which rows have as well, whatever the limit is.
    if text.count > options.maximumNameByteCount && place != .history {
      throw refusal(errors.limit("A member name has more than \(options.maximumNameByteCount) bytes.", ""))
    }
    name = String(decoding: text, as: UTF8.self)
    if place == .orders { return try withRows { try $0.orderName(text) } }
    if place == .members { return try beginMember() }
    if place == .model || place == .history { echo?.name(text) }
    guard names[names.count - 1].insert(name).inserted else { throw damaged("An object has two members with the same name.") }
    if place != .history && names[names.count - 1].count > options.maximumMemberCount {
      throw errors.limit("An object has more than \(options.maximumMemberCount) members.", "")
    }
    if place == .entities { try withRows { try $0.beginEntity(name) } }
  }

  private func beginMember() throws {
    guard let next = JSONDocumentReader.members.firstIndex(of: name) else {
      throw refusal(errors.newerFormat("an unknown member \(StoreError.quotedName(name))"))
    }
    guard next > member, JSONDocumentReader.members[(member + 1)..<next].allSatisfy(JSONDocumentReader.optionalMembers.contains) else {
      throw refusal(damaged("The member \"\(name)\" is duplicated or out of order, or the one before it is missing."))
    }
    member = next
    if member == JSONDocumentReader.entitiesMember { try beginEntities() }
  }

  private func beginEntities() throws {
    guard let loader else {
      isSatisfied = true
      throw Enough()
    }
    try withRows { try $0.begin(identity: loader.begin(header)) }
  }

  /// Calls the row reader.
  @inline(__always) func withRows(_ body: (JSONRowReader) throws -> Void) throws {
    guard let uncountedRows else { throw unexpected("object of the model") }
    try uncountedRows._withUnsafeGuaranteedRef { try body($0) }
  }

  // MARK: Scalars

  func null() throws {
    switch place {
    case .metadataValue: try takeMetadata(.null)
    case .model: model?.scalar(.null)
    case .history where depth > 2: transactions.scalar(.null)
    default: throw unexpected("null")
    }
  }

  func boolean(_ value: Bool) throws {
    switch place {
    case .metadataValue: try takeMetadata(.boolean(value))
    case .model: model?.scalar(.boolean(value))
    case .history where depth > 2: transactions.scalar(.boolean(value))
    default: throw unexpected("Boolean value")
    }
  }

  func number(_ text: UnsafeRawBufferPointer) throws {
    switch place {
    case .orderKeys: try withRows { try $0.orderKey(text) }
    case .nextKeys: try takeNextKey(text)
    case .metadataValue: try takeMetadata(.number(text))
    case .members: try takeMember(number: text)
    case .model: model?.scalar(.number(text))
    case .history: try takeHistory(number: text)
    default: throw unexpected("number")
    }
  }

  func string(_ text: UnsafeRawBufferPointer) throws {
    switch place {
    case .orderKeys: try withRows { try $0.orderKey(text) }
    case .nextKeys: try takeNextKey(text)
    case .hashes: header.versionHashes[name] = try hash(text)
    case .layouts: header.layoutHashes?[name] = try hash(text)
    case .metadataValue: try takeMetadata(.string(text))
    case .members: try takeMember(string: text)
    case .model: model?.scalar(.string(text))
    case .history where depth > 2: transactions.scalar(.string(text))
    default: throw unexpected("string")
    }
  }

  private func takeMember(number text: UnsafeRawBufferPointer) throws {
    switch JSONDocumentReader.members[max(member, 0)] {
    case "version":
      guard let version = NumberText.integer(text), version >= 1 else { throw damaged("The format version is invalid.") }
      if version > JSONFormat.version { throw errors.newerFormat("the newer format version \(version)") }
    case "generation": header.generation = try generation(text)
    default: throw unexpected("number")
    }
  }

  private func takeMember(string text: UnsafeRawBufferPointer) throws {
    switch JSONDocumentReader.members[max(member, 0)] {
    case "format":
      isRecognised = text.elementsEqual(JSONFormat.name.utf8)
      if !isRecognised { throw errors.notAStore() }
    case "uuid":
      let uuid = String(decoding: text, as: UTF8.self)
      guard JSONMetadata.value("uuid", .string(text)) != nil, uuid == uuid.uppercased() else { throw damaged("The store UUID is invalid.") }
      header.storeUUID = uuid
    case "generation": header.generation = try generation(text)
    case "lineage":
      guard case .data(let data)? = JSONMetadata.value("binaryData", .string(text)) else { throw damaged("The lineage isn't base64.") }
      header.lineage = Array(data)
    case "digest": break
    default: throw unexpected("string")
    }
  }

  private func takeHistory(number text: UnsafeRawBufferPointer) throws {
    if depth > 2 { return transactions.scalar(.number(text)) }
    guard lastTransaction == nil, let last = NumberText.integer(text) else { throw damaged("The history is invalid.") }
    lastTransaction = last
  }

  private func takeHistory() throws {
    guard let last = lastTransaction, let history = HistoryLog(last: last, lines: try transactions.text()) else {
      throw damaged("The history is invalid.")
    }
    loader?.take(history: history)
    place = .members
  }

  private func generation(_ text: UnsafeRawBufferPointer) throws -> Int64 {
    if let number = NumberText.integer(text), StoreFileHeader.generations.contains(number) { return number }
    throw damaged("The generation number is invalid.")
  }

  private func hash(_ text: UnsafeRawBufferPointer) throws -> [UInt8] {
    guard case .data(let data)? = JSONMetadata.value("binaryData", .string(text)), data.count == 32 else {
      throw damaged("An entity's hash isn't the base64 form of 32 bytes.")
    }
    return Array(data)
  }

  private func takeNextKey(_ text: UnsafeRawBufferPointer) throws {
    guard let key = NumberText.integer(text), TableLoader.nextKeys.contains(ObjectKey(key)) else {
      throw damaged("An entity's next key is invalid.")
    }
    header.nextKeys[name] = ObjectKey(key)
  }

  private func takeMetadata(_ scalar: JSONMetadata.Scalar) throws {
    if let type = metadataType {
      guard !hasMetadataValue, let value = JSONMetadata.value(type, scalar) else {
        throw damaged("A metadata value doesn't match its type.")
      }
      header.metadata[name] = value
      hasMetadataValue = true
    } else if case .string(let text) = scalar {
      metadataType = String(decoding: text, as: UTF8.self)
    } else {
      throw damaged("A metadata value isn't a pair of a type and a value.")
    }
  }
}
